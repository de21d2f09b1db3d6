/**
 * A rolling restart behind nginx (`deploy/nginx/nginx.conf`): two nodes get SIGTERM in turn, while clients create and poll without a pause.
 * No request is lost, and every run that was answered with 201 is charged once. `npm run proof -- rolling`; skipped without nginx.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createPlace, rushes, type Service, serve } from '../support/binary.js'
import { ask, hasNginx, startNginx } from '../support/nginx.js'
import { tableOfFigures } from '../support/proof/figures.js'
import { countOf } from '../support/proof/service-runs.js'

const RESTARTS = 12
const PAUSE_MS = 500
const CLIENTS = 4
const RUNS = '/api/v1/runs'
const CREATE = JSON.stringify({ model: 'rushes/preview-image', input: { prompt: 'a fox' } })

const record = tableOfFigures()
/** Without times, numbers and addresses. */
const errorsOf = (log: string): readonly string[] =>
  log
    .split('\n')
    .filter((line) => /\[(error|crit|alert)\]/.test(line))
    .map((line) => line.replace(/^.*?: \*\d+ /, '').replace(/,.*$/, ''))

const portOf = ({ url }: Service): number => Number(new URL(url).port)

describe.skipIf(!hasNginx)('a rolling restart behind nginx', () => {
  it('loses no request and no run', { timeout: 300_000 }, async () => {
    const place = createPlace()
    const data = join(place.folder, 'data')
    const start = (port = 0) =>
      serve(place, [
        ...['--data', data, '--port', String(port), '--role', 'api'],
        '--trust-proxy',
        '127.0.0.1',
      ])
    const nodes: [Service, Service] = [await start(), await start()]
    const nginx = await startNginx([portOf(nodes[0]), portOf(nodes[1])])
    const admin = async (...words: string[]) =>
      (await rushes(place, ['admin', ...words, '--data', data])).stdout.trim()
    const key = await admin('key', 'create', '--account', 'default', '--rate', '10000/1s')
    await admin('credits', 'add', 'default', '1000000')

    const headers = { authorization: `Bearer ${key}` }
    const creates: (string | number)[] = []
    const polls: (string | number)[] = []
    let last = 'run_none'
    let going = true
    const send = (request: Parameters<typeof ask>[1]) =>
      ask(nginx.port, request).catch((error: NodeJS.ErrnoException) => ({
        status: error.code ?? 'no response',
        body: Buffer.from(''),
      }))
    const create = async () => {
      while (going) {
        const { status, body } = await send({ method: 'POST', path: RUNS, headers, body: CREATE })
        creates.push(status)
        if (status === 201) last = JSON.parse(body.toString()).id
      }
    }
    const poll = async () => {
      while (going) polls.push((await send({ path: `${RUNS}/${last}`, headers })).status)
    }
    const clients = Array.from({ length: CLIENTS }, () => [create(), poll()]).flat()
    const restarts: number[] = []
    for (let restart = 0; restart < RESTARTS; restart++) {
      await sleep(PAUSE_MS)
      const which = restart % 2 === 0 ? 0 : 1
      const startedAt = performance.now()
      nodes[which].process.kill('SIGTERM')
      expect((await nodes[which].process.ended).code).toBe(0)
      restarts.push(Math.round(performance.now() - startedAt))
      nodes[which] = await start(portOf(nodes[which]))
    }
    going = false
    await Promise.all(clients)

    const accepted = creates.filter((status) => status === 201).length
    const entries = await admin('credits', 'list', 'default', '--limit', '0', '--json')
    const charged = entries.split('"kind":"charge"').length - 1
    record(`${RESTARTS} restarts behind nginx`, {
      creates: countOf(creates),
      polls: countOf(polls),
      charged,
      'errors of nginx': countOf(errorsOf(nginx.errors())),
      'longest stop, ms': Math.max(...restarts),
    })
    expect({ lost: creates.length - accepted, charged }).toEqual({ lost: 0, charged: accepted })
    expect(polls.filter((status) => status !== 200 && status !== 404)).toEqual([])
    expect(Math.max(...restarts)).toBeLessThan(5_000)
  })
})
