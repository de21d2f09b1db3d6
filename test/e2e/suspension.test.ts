/** A process that was stopped beyond its wait limit reads the answer that came meanwhile before it says that the time is over. */
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { suspended } from '../support/suspension.js'

it.skipIf(!existsSync('/proc/self/stat'))(
  'the status that came while the process was stopped counts',
  async () => {
    const { code, stdout, stderr, outputUrl } = await suspended({
      words: ['run', 'image', 'a fox', '--timeout', '3s'],
      asked: 'status',
      answerAfterMs: 0,
      continueAfterMs: 3_500,
    })
    expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: `${outputUrl}\n` })
  },
)
