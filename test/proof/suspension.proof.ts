/** Stopped for longer than the 60 s that an answer may take, while the answer came in time. */
import { describe, expect, it } from 'vitest'
import { type Asked, suspended } from '../support/suspension.js'

const COMMANDS: Readonly<Record<Asked, readonly string[]>> = {
  create: ['run', 'image', 'a fox'],
  status: ['wait', 'run_slept'],
  output: ['run', 'image', 'a fox', '-o', 'fox.png'],
}

describe.concurrent('SIGSTOP before the answer, SIGCONT after 75 s', () => {
  it.each(['create', 'status', 'output'] as const)('%s: the answer is read', async (asked) => {
    const { code, stdout, stderr, outputUrl, requests } = await suspended({
      words: COMMANDS[asked],
      asked,
      answerAfterMs: 1_500,
      continueAfterMs: 74_500,
    })
    expect({ code, stdout, stderr }).toMatchObject({
      code: 0,
      stdout: asked === 'output' ? 'fox.png\n' : `${outputUrl}\n`,
    })
    expect(requests.filter((each) => each === asked)).toHaveLength(1)
  })
})

it('the status that came while the process was stopped beyond its --timeout counts', async () => {
  const { code, stdout, stderr, outputUrl } = await suspended({
    words: ['run', 'image', 'a fox', '--timeout', '3s'],
    asked: 'status',
    answerAfterMs: 0,
    continueAfterMs: 3_500,
  })
  expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: `${outputUrl}\n` })
})
