import { expect, onTestFinished, test } from 'vitest'
import { createMetrics } from '../../../src/service/http/metrics.js'
import { ask, createManualClock, createTestService } from '../../support/index.js'
import { parseMetrics } from './parse-metrics.js'

const FREE = { host: '127.0.0.1', port: 0 }

async function createListening() {
  const clock = createManualClock()
  const metrics = createMetrics(clock)
  const service = await createTestService({ clock, metrics })
  return { ...service, ...(await metrics.listen(FREE)), metrics }
}

test('the metrics port serves only /metrics, without a key, and the port of the service does not', async () => {
  const service = await createListening()
  const { url } = service
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/)
  const answer = await fetch(url)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect([...parseMetrics(await answer.text()).keys()]).toContain('rushes_queue_length')
  expect((await fetch(url, { method: 'HEAD' })).status).toBe(200)
  for (const path of ['/', '/metrics/x', '/healthz', '/api/v1/runs']) {
    const other = await fetch(new URL(path, url))
    expect([other.status, await other.json()]).toEqual([
      404,
      { error: { code: 'not_found', message: 'Not found.' } },
    ])
  }
  expect((await fetch(url, { method: 'POST' })).status).toBe(404)
  expect((await ask(service, 'GET', '/metrics')).status).toBe(404)
})

test('a metrics port in use is a usage error that names the flag', async () => {
  const { url } = await createListening()
  const port = Number(new URL(url).port)
  const metrics = createMetrics(createManualClock())
  onTestFinished(() => metrics.close())
  await expect(metrics.listen({ ...FREE, port })).rejects.toMatchObject({
    code: 'usage',
    exitCode: 2,
    message: `Port ${port} on 127.0.0.1 is in use.`,
    hint: 'Choose another one with --metrics-port, or use --metrics-port 0 for a free port.',
  })
})
