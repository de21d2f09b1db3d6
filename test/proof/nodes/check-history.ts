/** Checks a history against the promises of the service. Pure. */
import { createHash } from 'node:crypto'
import type { Event, Requested } from './history.js'

export interface Promises {
  readonly requests: number
  readonly windowMs: number
  /** Returns the bytes that the engine creates from a prompt. */
  outputOf(prompt: string): Uint8Array
}

const ENDED = ['succeeded', 'failed']

/** Returns one sentence for each broken promise. */
export function brokenPromises(events: readonly Event[], promises: Promises): readonly string[] {
  const only = <Is extends Event['is']>(is: Is) =>
    events.filter((event): event is Extract<Event, { is: Is }> => event.is === is)
  const creates = only('create')
  const polls = only('poll')
  const stored = new Map(only('stored').map((run) => [run.id, run]))
  const entries = only('entry')
  const problems: string[] = []

  for (const { id = '', prompt } of creates.filter(({ status }) => status === 201)) {
    const run = stored.get(id)
    if (run === undefined) problems.push(`${id} was accepted, and is not stored`)
    else if (run.prompt !== prompt) problems.push(`${id} has the prompt of another create`)
  }
  for (const { id, status } of stored.values())
    if (!ENDED.includes(status)) problems.push(`${id} has not ended: it is ${status}`)

  problems.push(...wrongRuns(creates, [...stored.values()]))
  for (const { fromMs, toMs } of only('rolling restart'))
    for (const { prompt, status, sentMs, receivedMs } of creates)
      if (status === 0 && sentMs > fromMs && receivedMs < toMs)
        for (const { id } of [...stored.values()].filter((run) => run.prompt === prompt))
          problems.push(`${id} was accepted in the rolling restart without a response`)
  problems.push(...wrongCharges([...stored.values()], entries))
  problems.push(...changedAfterEnd(polls))

  const prompts = new Map([...stored.values()].map(({ id, prompt }) => [id, prompt]))
  const shaOf = (id: string) => sha256(promises.outputOf(prompts.get(id) ?? ''))
  for (const { id, status, outputs } of stored.values())
    if (status === 'succeeded' && outputs.join() !== shaOf(id))
      problems.push(`${id} has stored outputs that were not made of its prompt`)
  for (const { id, sha256: seen } of only('output'))
    if (seen !== shaOf(id)) problems.push(`${id} was downloaded with other bytes`)

  problems.push(...aboveLimit([...creates, ...polls], only('database restart'), promises))
  const verified = only('verified')
  if (verified.length === 0) problems.push('the sums were not verified')
  return [...problems, ...verified.flatMap((event) => event.problems)]
}

/** A refused create must have no run. A create without a response has at most one. */
function wrongRuns(
  creates: readonly Extract<Event, { is: 'create' }>[],
  stored: readonly Extract<Event, { is: 'stored' }>[],
): readonly string[] {
  const statusOf = new Map(creates.map(({ prompt, status }) => [prompt, status]))
  const idsOf = new Map<string, readonly string[]>()
  for (const { id, prompt } of stored) idsOf.set(prompt, [...(idsOf.get(prompt) ?? []), id])
  return [...idsOf].flatMap(([prompt, ids]) => {
    const status = statusOf.get(prompt)
    if (status === undefined) return [`${ids.join()} has a prompt that was never sent`]
    if (ids.length > 1) return [`one create made ${ids.length} runs: ${ids.join()}`]
    return status === 201 || status === 0 ? [] : [`a create that was answered with ${status} made ${ids}`]
  })
}

function wrongCharges(
  stored: readonly Extract<Event, { is: 'stored' }>[],
  entries: readonly Extract<Event, { is: 'entry' }>[],
): readonly string[] {
  const byRun = new Map<string, Extract<Event, { is: 'entry' }>[]>()
  for (const entry of entries) byRun.set(entry.run, [...(byRun.get(entry.run) ?? []), entry])
  const wrong = stored.flatMap(({ id, status }) => {
    const own = byRun.get(id) ?? []
    byRun.delete(id)
    const kinds = own.map(({ kind }) => kind).join()
    const due = status === 'failed' ? 'charge,refund' : 'charge'
    if (kinds !== due) return [`${id} is ${status}, and its entries are: ${kinds || 'none'}`]
    const sum = own.reduce((total, { amount }) => total + amount, 0)
    return status === 'failed' && sum !== 0
      ? [`${id} was refunded ${sum} credits too much or too little`]
      : []
  })
  return [...wrong, ...[...byRun.keys()].map((id) => `${id} was charged, and is not stored`)]
}

/** After one node has shown that a run ended, no node may show another status. */
function changedAfterEnd(polls: readonly Extract<Event, { is: 'poll' }>[]): readonly string[] {
  const ends = new Map<string, { readonly runStatus: string; readonly receivedMs: number }>()
  const problems: string[] = []
  for (const { id, status, runStatus, sentMs, receivedMs } of polls) {
    if (status === 404) problems.push(`${id} was accepted, and was answered with 404`)
    if (runStatus === undefined) continue
    const end = ends.get(id)
    if (end !== undefined && sentMs > end.receivedMs && runStatus !== end.runStatus)
      problems.push(`${id} was ${end.runStatus}, and later ${runStatus}`)
    if (ENDED.includes(runStatus) && end === undefined) ends.set(id, { runStatus, receivedMs })
  }
  return problems
}

/**
 * Counts only requests that were sent and answered within one window: the service has surely counted these in that
 * window. A database that crashes may forget the requests before, so those before and after a crash are counted apart.
 */
function aboveLimit(
  requests: readonly Requested[],
  crashes: readonly Extract<Event, { is: 'database restart' }>[],
  { requests: limit, windowMs }: Pick<Promises, 'requests' | 'windowMs'>,
): readonly string[] {
  const taken = requests.filter(({ status }) => status === 200 || status === 201 || status === 404)
  const isCrashBetween = (earlier: Requested, later: Requested) =>
    crashes.some(({ fromMs, toMs }) => earlier.sentMs < toMs && later.receivedMs > fromMs)
  const keys = new Set(taken.map(({ key }) => key))
  return [...keys].flatMap((key) => {
    const own = taken.filter((request) => request.key === key).sort((a, b) => a.sentMs - b.sentMs)
    const most = own.reduce((highest, first, index) => {
      const endMs = first.sentMs + windowMs
      const inWindow = own
        .slice(index)
        .filter((request) => request.receivedMs < endMs && !isCrashBetween(first, request))
      return Math.max(highest, inWindow.length)
    }, 0)
    return most > limit ? [`${key} got ${most} requests within ${windowMs} ms`] : []
  })
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
