/** Checks of the service: address, one request, key. They send at most two requests, which cost nothing. */
import { randomBytes } from 'node:crypto'
import { EXIT, RushesError } from '../../errors.js'
import { findProxy, HttpFailure, isLoopback } from '../../host/http.js'
import { Interruption } from '../../host/interrupts.js'
import type { Context } from '../context/context.js'
import type { Env } from '../process/io.js'
import { addressHint } from '../settings/table.js'
import { combined, type Finding, failed, failedBy, ok, skipped, warning } from './finding.js'

interface CheckedAddress {
  readonly finding: Finding
  /** Undefined for an invalid address, and if no service is configured. */
  readonly url?: URL
}

export async function checkAddress(ctx: Context): Promise<CheckedAddress> {
  try {
    const address = await ctx.findAddress()
    if (address === undefined)
      return { finding: ok('address', 'no service configured: `--local` works, without key and cost') }
    if (ctx.globals.local) return { finding: ok('address', 'the local service in this process') }
    const hint = addressHint(address)
    const finding = hint === undefined ? ok('address', address) : warning('address', address, hint)
    return { finding, url: new URL(address) }
  } catch (error) {
    return { finding: failedBy('address', error) }
  }
}

const SKEW_WARNING_MS = 30_000
/** With a larger difference between the clocks, signed URLs and new certificates fail. */
const MAX_SKEW_MS = 300_000

interface CheckedRequest {
  readonly finding: Finding
  readonly isReached: boolean
}

/** Sends one request without the key. Any response proves the connection, and shows the service's clock. */
export async function checkRequest(ctx: Context, url: URL): Promise<CheckedRequest> {
  const { clock, interrupts, env } = ctx
  const startedAtMs = clock.monotonic()
  let proxy: string | undefined
  try {
    proxy = proxyFor(url, env)
    const fetch = await ctx.fetch()
    const response = await fetch({ method: 'GET', url, headers: { accept: '*/*' }, signal: interrupts.first })
    const elapsedMs = Math.round(clock.monotonic() - startedAtMs)
    const date = Date.parse(response.header('date') ?? '')
    response.discard()
    const how = [
      url.protocol === 'https:' ? 'connected, valid certificate' : 'connected',
      ...(proxy === undefined ? [] : [`through the proxy ${proxy}`]),
    ].join(', ')
    const parts = [ok('request', `${how} (${elapsedMs} ms)`), ...clockFindings(date - clock.now())]
    return { finding: combined('request', parts), isReached: true }
  } catch (error) {
    interrupts.first.throwIfAborted()
    return { finding: unreachable(error, url, proxy), isReached: false }
  }
}

function unreachable(error: unknown, url: URL, proxy: string | undefined): Finding {
  if (!(error instanceof HttpFailure)) return failedBy('request', error)
  return failed('request', `${url.host} cannot be reached: ${error.message}`, {
    exitCode: error.isInvalidHttp ? EXIT.serviceBroken : EXIT.network,
    advice: error.advice ?? adviceFor(error.code, proxy),
  })
}

/** The proxy for requests to this URL, without its password. Throws `usage` for an invalid one. */
export const proxyFor = (url: URL, env: Env): string | undefined =>
  isLoopback(url.hostname) ? undefined : findProxy(env, url.protocol)?.host

const adviceFor = (code: string | undefined, proxy: string | undefined): string => {
  if (proxy !== undefined) return `Check the service URL, and whether the proxy ${proxy} allows this host.`
  if (code === 'ENOTFOUND') return 'Check the spelling of the service URL, and the network of this machine.'
  if (code === 'ECONNREFUSED')
    return 'No server is listening there. Start a local service with `rushes serve`.'
  if (['EPERM', 'EACCES', 'ENETUNREACH'].includes(code ?? ''))
    return 'A sandbox may forbid network connections to this process. `--local` needs none.'
  return 'Check the firewall. If this network needs a proxy, set HTTPS_PROXY.'
}

/** `skewMs`: the service's clock minus this machine's clock; NaN when unknown. */
export function clockFindings(skewMs: number): readonly Finding[] {
  if (!(Math.abs(skewMs) >= SKEW_WARNING_MS)) return []
  // The difference is only approximate: the header has whole seconds, and the response took time to arrive.
  const skewSeconds = Math.round(Math.abs(skewMs) / 1_000)
  const message = `this machine's clock is ${skewSeconds} s ${skewMs < 0 ? 'ahead of' : 'behind'} the service's`
  const advice = 'Synchronize the clock (NTP). With a wrong clock, signed URLs fail.'
  return Math.abs(skewMs) >= MAX_SKEW_MS
    ? [failed('request', message, { advice, exitCode: EXIT.serviceBroken })]
    : [warning('request', message, advice)]
}

/** Requests a run that cannot exist. For a valid key the service returns `run_not_found`. */
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

/** Request and key for a reason that makes both impossible. */
export const skipService = (reason: string): readonly Finding[] =>
  ['request', 'key'].map((check) => skipped(check, reason))
