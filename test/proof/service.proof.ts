/**
 * The service under load, in real processes, while it and its renderers are killed with -9: every run that was
 * accepted comes to its end, once, and can be fetched.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { hashOfKey, newKey } from '../../src/service/secrets.js'
import { openSqliteStore } from '../../src/service/store/sqlite/index.js'
import { createPlace, processesOf, RENDERER, type Running, start } from '../support/binary.js'
import { until } from '../support/until.js'

const SECONDS = Number(process.env.SOAK_SECONDS ?? 60)
const KEYS = 12
const CREDITS = 1_000_000
/** Leaves the answer in two steps, so that a kill finds it half made; dies by itself now and then. */
const ENGINE =
  'read -r input; sleep 0.1; echo half > "$RUSHES_OUTPUT_DIR/film.txt"; sleep 0.2; echo "$RUSHES_RUN_ID" > "$RUSHES_OUTPUT_DIR/film.txt"'

const ORDERS = [
  { model: 'rushes/preview-image', input: { prompt: 'a fox in snow' } },
  { model: 'rushes/preview-video', input: { prompt: 'a fox runs' } },
] as const

interface Accepted {
  readonly id: string
  readonly key: string
}

interface Body {
  readonly id: string
  readonly status: string
  readonly output: { readonly urls: readonly string[] } | null
  readonly error: { readonly code: string } | null
}

it('nothing that was accepted is lost, whatever is killed', async () => {
  const place = createPlace()
  const data = join(place.home, 'data')
  const keys = await keysIn(data)
  const words = ['serve', '--json', '--data', data, '--engine', `video=${ENGINE}`]
  let service = start(place, [...words, '--port', '0'], { stdin: 'ignore' })
  const [line] = await service.says('stdout', /^\{.*\}$/m)
  const { url } = JSON.parse(line) as { url: string }
  const port = new URL(url).port
  const startAgain = async (): Promise<Running> => {
    const next = start(place, [...words, '--port', port], { stdin: 'ignore' })
    await next.says('stdout', /^\{.*\}$/m)
    return next
  }

  const accepted: Accepted[] = []
  const counts = { asked: 0, lostAnswers: 0, serviceKills: 0, rendererKills: 0, refused: 0 }
  const endAt = performance.now() + SECONDS * 1_000
  const going = () => performance.now() < endAt

  const customers = keys.map(async (key, at) => {
    for (let turn = at; going(); turn++) {
      counts.asked++
      try {
        const answer = await ask(url, key, '/api/v1/runs', ORDERS[turn % ORDERS.length])
        expect(answer.status).toBeLessThan(500)
        if (answer.status === 201) accepted.push({ id: answer.body.id, key })
        else counts.refused++
      } catch (error) {
        if (error instanceof Error && error.name === 'AssertionError') throw error
        counts.lostAnswers++
      }
      await sleep(600 + Math.random() * 800)
    }
  })
  const killer = (async () => {
    while (going()) {
      await sleep(500 + Math.random() * 2_500)
      const renderers = [...processesOf(place, RENDERER), ...processesOf(place, /rushes-engine/)]
      const victim = renderers[Math.floor(Math.random() * renderers.length)]
      if (Math.random() < 0.6 && victim !== undefined) {
        if (killed(victim)) counts.rendererKills++
      } else {
        service.kill('SIGKILL')
        await service.ended
        counts.serviceKills++
        service = await startAgain()
      }
    }
  })()
  await Promise.all([...customers, killer])

  const ends = new Map<string, number>()
  const pathsSeen = new Set<string>()
  for (const run of accepted) {
    const body = await ended(url, run)
    const end = body.error?.code ?? body.status
    ends.set(end, (ends.get(end) ?? 0) + 1)
    for (const address of body.output?.urls ?? []) {
      expect(pathsSeen.has(address)).toBe(false)
      pathsSeen.add(address)
      const bytes = Buffer.from(await (await fetch(address)).arrayBuffer())
      if (address.endsWith('.txt')) expect(bytes.toString()).toBe(`${run.id}\n`)
      else expect(bytes.toString('latin1', 1, 4)).toBe('PNG')
    }
  }
  process.stdout.write(
    `${SECONDS} s: ${JSON.stringify({ ...counts, accepted: accepted.length, ends: Object.fromEntries(ends) })}\n`,
  )
  expect([...ends.keys()].filter((end) => !['succeeded', 'renderer_crashed'].includes(end))).toEqual([])
  await until('no engine is left', () => processesOf(place, /rushes-engine/).length === 0)
  const ledger = await ledgerOf(data)
  expect(ledger.problems).toEqual([])
  // A lost answer may have been a run; what was accepted and did not fail is the least that was spent.
  expect(ledger.credits).toBeLessThan(CREDITS)
  service.kill('SIGTERM')
  expect((await service.ended).code).toBe(0)
  expect(readdirSync(join(data, 'work'))).toEqual([])
})

/** One more account's worth of keys than one could have at the limit of one. */
async function keysIn(data: string): Promise<readonly string[]> {
  const store = openSqliteStore(join(data, 'service.db'))
  const accountId = await store.ensureAccount({ name: 'default', credits: CREDITS, nowMs: Date.now() })
  const keys = Array.from({ length: KEYS }, newKey)
  for (const key of keys)
    await store.addKey({
      accountId,
      hash: hashOfKey(key),
      prefix: 'rk_soak',
      name: 'soak',
      nowMs: Date.now(),
    })
  await store.close()
  return keys
}

async function ask(
  url: string,
  key: string,
  path: string,
  body?: object,
): Promise<{ status: number; body: Body }> {
  const answer = await fetch(`${url}${path}`, {
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    signal: AbortSignal.timeout(10_000),
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: (await answer.json()) as Body }
}

async function ended(url: string, { id, key }: Accepted): Promise<Body> {
  return await until(
    `the end of ${id}`,
    async () => {
      const { status, body } = await ask(url, key, `/api/v1/runs/${id}`)
      if (status === 429) {
        await sleep(1_000)
        return undefined
      }
      expect([id, status]).toEqual([id, 200])
      if (['succeeded', 'failed'].includes(body.status)) return body
      await sleep(500)
      return undefined
    },
    300_000,
  )
}

function killed(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}

/** The ledger of credits, added up anew. */
async function ledgerOf(data: string) {
  const store = openSqliteStore(join(data, 'service.db'))
  const ledger = await store.verify()
  await store.close()
  return ledger
}
