/** A process that was stopped reads the answer that came meanwhile before it says that the time is over. */
import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { suspended } from '../support/suspension.js'

describe.skipIf(!existsSync('/proc/self/stat')).concurrent('stopped beyond the wait limit', () => {
  it.each([
    ['run', ['run', 'image', 'a fox', '--timeout', '3s']],
    ['wait', ['wait', 'run_slept', '--timeout', '3s']],
  ])('%s: the status that came meanwhile counts', async (_, words) => {
    const { code, stdout, stderr, outputUrl } = await suspended({
      words,
      asked: 'status',
      answerAfterMs: 0,
      continueAfterMs: 3_500,
    })
    expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: `${outputUrl}\n` })
  })
})
