/** The limit of 20 requests in 10 s in real time, over several windows, against the service that counts. */
import { expect, it } from 'vitest'
import { createPlace, rushes, serve } from '../support/binary.js'

const RUNS = 30

it(`makes and waits for ${RUNS} runs, at least ${2 * RUNS} requests, without one 429`, async () => {
  const place = await serve(createPlace())
  const began = performance.now()
  const { code, stdout, stderr } = await rushes(place, ['run', 'image', 'a fox', '-n', `${RUNS}`, '--debug'])
  const seconds = (performance.now() - began) / 1_000
  // One line for each answer of the service, the retried ones too.
  const answers = stderr.match(/^debug: < \d+/gm) ?? []
  const turnedAway = answers.filter((answer) => answer.endsWith('429'))
  process.stdout.write(
    `${RUNS} runs, ${answers.length} requests, ${turnedAway.length} turned away, ${seconds.toFixed(1)} s\n`,
  )
  expect({ code, urls: stdout.trim().split('\n').length, turnedAway }).toEqual({
    code: 0,
    urls: RUNS,
    turnedAway: [],
  })
  expect(answers.length).toBeGreaterThanOrEqual(2 * RUNS)
  // 60 requests are three windows: the last one cannot begin before 20 s.
  expect(seconds).toBeGreaterThan(19)
})
