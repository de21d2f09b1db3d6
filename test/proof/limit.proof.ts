/** The limit of 20 requests in 10 s in real time, over several windows, against the service that counts. */
import { expect, it } from 'vitest'
import { start } from '../support/started.js'

it('makes and waits for 40 runs without one 429', async () => {
  const service = start(['serve', '--port', '0', '--json'])
  const { url, api_key } = JSON.parse((await service.says(/\n/)).split('\n')[0] ?? '')
  const began = performance.now()
  const run = start(['run', 'image', 'a fox', '-n', '40', '--debug', '--model', 'rushes/preview-image'], {
    env: { RUSHES_BASE_URL: url, RUSHES_API_KEY: api_key },
  })
  const { code, stdout, stderr } = await run.ended
  const seconds = (performance.now() - began) / 1_000
  const answers = stderr.match(/^debug: < \d+/gm) ?? []
  const turnedAway = answers.filter((answer) => answer.endsWith('429'))
  process.stdout.write(
    `40 runs, ${answers.length} requests, ${turnedAway.length} turned away, ${seconds.toFixed(1)} s\n`,
  )
  expect({ code, urls: stdout.trim().split('\n').length, turnedAway }).toEqual({
    code: 0,
    urls: 40,
    turnedAway: [],
  })
  expect(answers.length).toBeGreaterThanOrEqual(80)
  service.child.kill('SIGTERM')
  await service.ended
})
