/** Faults over a real port against the real program. By table: test/cli/faults.test.ts. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { rushes, type Service, start } from '../support/binary.js'
import { randomOutput } from '../support/engines.js'
import { createFaultyProxy } from '../support/faults.js'
import { personAt, quickEngines, serveQuickly } from '../support/quick-service.js'

const RUN = ['run', 'image', 'a fox']

it.concurrent('serve --fault reports each injected fault as JSON, and closes stalled requests when it ends', async () => {
  const service = await serveQuickly([
    ...quickEngines(),
    '--fault',
    'create:lose::1',
    '--fault',
    'create:stall',
  ])
  const said = (message: string) => JSON.stringify({ warning: { message: `fault: create ${message}` } })
  const lost = await rushes(service, RUN)
  expect({ code: lost.code, stdout: lost.stdout }).toEqual({ code: 13, stdout: '' })
  expect(lost.stderr).toContain('A run may exist and cost money')
  const waiting = start(await personAt(service), RUN, { stdin: 'ignore' })
  await service.process.prints('stderr', /stalled/)
  service.process.kill('SIGTERM')
  const { code, stderr } = await service.process.ended
  expect({ code, stderr: stderr.trim().split('\n') }).toEqual({
    code: 0,
    stderr: [said('lost its response after the service acted'), said('stalled without a response')],
  })
  expect((await waiting.ended).code).toBe(13)
})

describe('behind a proxy', () => {
  let service: Service
  beforeAll(async () => {
    service = await serveQuickly(['--engine', `image=${randomOutput('a.png', 20_000)}`])
  })

  it('only a reset upload is an unknown outcome, and a broken download resumes', async () => {
    const proxy = await createFaultyProxy(service.url)
    const place = service.with({ RUSHES_BASE_URL: proxy.url })

    proxy.next('create', 'reset:upload=20')
    const lost = await rushes(place, [...RUN, '-o', 'fox.png'])
    expect({ code: lost.code, reached: proxy.reached('create') }).toEqual({ code: 13, reached: 0 })

    proxy.next('create', 'slow:2kB')
    proxy.next('output', 'reset:1000')
    proxy.next('status', '503')
    const ran = await rushes(place, [...RUN, '-o', 'fox.png'])
    expect({ code: ran.code, stdout: ran.stdout }).toEqual({ code: 0, stdout: 'fox.png\n' })
    expect(proxy.reached('create')).toBe(1)
    expect(proxy.strikes).toHaveLength(4)
    expect(proxy.seen.filter(({ place: where }) => where === 'output').length).toBeGreaterThan(1)
    expect(readdirSync(place.folder)).toEqual(['fox.png'])
    expect(readFileSync(join(place.folder, 'fox.png'))).toHaveLength(20_000)
  })
})
