/** Starts and stops the service of a proof, sends requests to it, and tracks the accepted runs. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type Place, processesOf, type Running, start } from '../binary.js'
import { until } from '../until.js'
import { ask, type Client, endOf, IMAGE_OF_A_FOX, RUNS } from './clients.js'

export const countOf = (values: readonly (string | number)[]): string => {
  const counts = new Map<string | number, number>()
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
  return [...counts].map(([value, count]) => `${count} x ${value}`).join(', ')
}

const ENGINE = /renderer\.cjs|rushes-engine/

/** Returns the renderer and engine processes of a place. */
export const enginesOf = (place: Place): readonly number[] => processesOf(place, ENGINE)

/** Kills a process. False if it has already ended. */
export function killProcess(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}

export const noEngineLeft = (place: Place): Promise<unknown> =>
  until('the end of every renderer', () => enginesOf(place).length === 0)

export const serveWords = (data: string, port: string | number, ...more: string[]) => [
  ...['serve', '--json', '--data', data, '--port', String(port), '--concurrency', '2'],
  ...more,
]

export async function urlOf(service: Running): Promise<string> {
  const [line] = await service.prints('stdout', /^\{.*\}$/m)
  return (JSON.parse(line) as { url: string }).url
}

export const isReady = async (url: string): Promise<boolean> =>
  (await ask({ url, apiKey: '' }, '/readyz').catch(() => undefined))?.status === 200

/** Resolves when the service renders the run. */
export const rendering = (client: Client, id: string): Promise<unknown> =>
  until('a render', async () => (await ask(client, `${RUNS}/${id}`)).body.status === 'processing')

export async function startService(place: Place, words: readonly string[]) {
  const service = start(place, words, { stdin: 'ignore' })
  return { service, url: await urlOf(service) }
}

export async function stop(service: Running, place: Place): Promise<void> {
  service.kill('SIGTERM')
  expect((await service.ended).code).toBe(0)
  await noEngineLeft(place)
}

export interface Creates {
  readonly accepted: readonly { readonly id: string; readonly client: Client }[]
  /** Outcomes such as `201`, `503 not_ready`, `no response`. */
  readonly outcomes: readonly string[]
  /** Sends another create, without waiting for its response. */
  send(order: object): void
  /** Resolves when every create has an outcome. */
  settled(): Promise<void>
}

/** Sends creates, using these keys in turn. */
export function createsAt(url: string, keys: readonly string[]): Creates {
  const accepted: { readonly id: string; readonly client: Client }[] = []
  const outcomes: string[] = []
  const open = new Set<Promise<void>>()
  let sent = 0
  const create = async (client: Client, order: object) => {
    const answer = await ask(client, RUNS, order).catch(() => undefined)
    outcomes.push([answer?.status ?? 'no response', answer?.body?.error?.code].filter(Boolean).join(' '))
    if (answer?.status === 201) accepted.push({ id: answer.body.id, client })
  }
  return {
    accepted,
    outcomes,
    send(order) {
      const client = { url, apiKey: keys[sent++ % keys.length] ?? '' }
      const one = create(client, order).finally(() => open.delete(one))
      open.add(one)
    },
    async settled() {
      await Promise.all(open)
    },
  }
}

/** Sends one create after another until stopped. */
export function createSteadily(
  url: string,
  keys: readonly string[],
  everyMs: number,
  order: object = IMAGE_OF_A_FOX,
) {
  const creates = createsAt(url, keys)
  let going = true
  const all = (async () => {
    while (going) {
      creates.send(order)
      await sleep(everyMs)
    }
    await creates.settled()
  })()
  return {
    ...creates,
    async stop() {
      going = false
      await all
    },
  }
}

/** Returns the final status of each accepted run. */
export const endsOf = async ({ accepted }: Pick<Creates, 'accepted'>): Promise<readonly string[]> => {
  const ends: string[] = []
  for (const { id, client } of accepted) {
    const run = await endOf(client, id)
    ends.push(run.error === null ? run.status : `${run.status} ${run.error.code}`)
  }
  return ends
}
