/**
 * Checks of the service: name, connection, clock and key. Sends at most two requests to the service.
 */
import { randomBytes } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { EXIT, RushesError } from '../../errors.js'
import { HttpFailure, isLoopback } from '../../host/http.js'
import { Interruption } from '../../host/interrupts.js'
import type { Context } from '../context/context.js'
import { type Finding, failed, failedBy, ok, skipped, warning } from './finding.js'

const SKEW_WARNING_MS = 30_000
/** With a larger difference between the clocks, signed URLs and new certificates fail. */
const MAX_SKEW_MS = 300_000

export async function checkName(url: URL, isProxied: boolean): Promise<Finding> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0 || isLoopback(host)) return ok('dns', `${host}: no lookup needed`)
  if (isProxied) return skipped('dns', 'the proxy resolves the name')
  try {
    const { address } = await lookup(host)
    return ok('dns', `${host} resolves to ${address}`)
  } catch (error) {
    return failed('dns', `${host} was not found (${codeOf(error)})`, {
      exitCode: EXIT.network,
      advice: 'Check the spelling of the service URL and the network connection of this machine.',
    })
  }
}

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? error)

export interface Reached {
  readonly findings: readonly Finding[]
  readonly isReached: boolean
}

/** Sends one request without the key. Any response proves the connection. */
export async function checkConnection(ctx: Context, url: URL, isProxied: boolean): Promise<Reached> {
  const { clock, interrupts } = ctx
  const startedAtMs = clock.monotonic()
  try {
    const fetch = await ctx.fetch()
    const response = await fetch({ method: 'GET', url, headers: { accept: '*/*' }, signal: interrupts.first })
    const elapsedMs = Math.round(clock.monotonic() - startedAtMs)
    const date = Date.parse(response.header('date') ?? '')
    response.discard()
    const result = url.protocol === 'https:' ? 'connected, valid certificate' : 'connected'
    return {
      isReached: true,
      findings: [ok('connection', `${result} (${elapsedMs} ms)`), clockFinding(date - clock.now())],
    }
  } catch (error) {
    return {
      isReached: false,
      findings: [connectionFailed(error, url, isProxied), skipped('clock', 'no response')],
    }
  }
}

function connectionFailed(error: unknown, url: URL, isProxied: boolean): Finding {
  if (error instanceof HttpFailure)
    return failed('connection', `${url.host} cannot be reached: ${error.message}`, {
      exitCode: error.isInvalidHttp ? EXIT.serviceBroken : EXIT.network,
      advice: error.advice ?? adviceFor(error.code, isProxied),
    })
  if (!(error instanceof RushesError)) throw error
  return failed('connection', error.message, { exitCode: error.exitCode, advice: error.hint })
}

const adviceFor = (code: string | undefined, isProxied: boolean): string => {
  if (isProxied) return 'Check the service URL, and whether the proxy allows this host.'
  if (code === 'ECONNREFUSED')
    return 'No server is listening there. Start a local service with `rushes serve`.'
  return 'Check the firewall. If this network needs a proxy, set HTTPS_PROXY.'
}

/** `skewMs`: the service's clock minus this machine's clock; NaN when unknown. */
export function clockFinding(skewMs: number): Finding {
  if (Number.isNaN(skewMs)) return skipped('clock', 'the response has no date')
  // The difference is only approximate: the header has whole seconds, and the response took time to arrive.
  const skewSeconds = Math.round(Math.abs(skewMs) / 1_000)
  const difference = `this machine's clock is ${skewSeconds} s ${skewMs < 0 ? 'ahead of' : 'behind'} the service's`
  const advice = 'Synchronize the clock (NTP). With a wrong clock, signed URLs fail.'
  if (Math.abs(skewMs) >= MAX_SKEW_MS)
    return failed('clock', difference, { advice, exitCode: EXIT.serviceBroken })
  if (Math.abs(skewMs) >= SKEW_WARNING_MS) return warning('clock', difference, advice)
  return ok('clock', skewSeconds <= 2 ? "matches the service's clock" : difference)
}

/** Requests a run that cannot exist. For a valid key the service returns `run_not_found`, at no cost. */
export async function checkKey(ctx: Context): Promise<Finding> {
  try {
    const { client } = await ctx.connect()
    await client.get(`doctor-check-${randomBytes(8).toString('hex')}`, ctx.interrupts.first)
    return warning(
      'key',
      'the service returned a run for a random id',
      'Check the service URL: another kind of server may be running there.',
    )
  } catch (thrown) {
    if (thrown instanceof Interruption) throw thrown
    if (thrown instanceof RushesError && thrown.code === 'run_not_found')
      return ok('key', 'accepted by the service')
    return failedBy('key', thrown)
  }
}
