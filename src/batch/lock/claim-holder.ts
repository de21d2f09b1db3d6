/** What a claim file says of its holder. */
import { hostname } from 'node:os'
import { isObject } from '../../protocol/parse.js'

export interface Holder {
  readonly pid: number
  readonly host: string
  /** The id of its process's lock. Earlier versions wrote the boot of the machine, and find that this is another one. */
  readonly machine: string
  readonly since: string
  readonly heartbeat: string
}

/** Each text is as long as the one that it overwrites. */
const TEXT_BYTES = 512

let beats = 0

/** Of this process, at this moment. `machine` is the id of its lock. `now`: wall-clock time in milliseconds. */
export function claimText(token: string, machine: string, since: string, now: number): string {
  const claim = {
    token,
    pid: process.pid,
    host: hostname(),
    machine,
    since,
    heartbeat: new Date(now).toISOString(),
    // The wall clock may be set back: the text changes nevertheless.
    beats: ++beats,
  }
  return `${JSON.stringify(claim).padEnd(TEXT_BYTES - 1)}\n`
}

/** Undefined for an empty or broken file. */
export function holderOf(text: string): Holder | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isObject(value)) return undefined
  const { pid, host, machine, since, heartbeat } = value
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1) return undefined
  if (typeof host !== 'string' || typeof machine !== 'string') return undefined
  if (typeof since !== 'string' || typeof heartbeat !== 'string') return undefined
  return { pid, host, machine, since, heartbeat }
}

/** ` (process 12 on host, since …)`, or nothing. */
export const describeHolder = (holder: Holder | undefined): string =>
  holder === undefined ? '' : ` (process ${holder.pid} on ${holder.host}, since ${holder.since})`
