/** Checks the name, connection, clock and key of the service, with two requests at most. */
import { randomBytes } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { EXIT, RushesError } from '../../errors.js'
import { HttpFailure, isLoopback } from '../../host/http.js'
import type { Context } from '../context/context.js'
import { asRushesError } from '../process/exit.js'
import { Interruption } from '../process/interrupts.js'
import { type Finding, failed, ok, skipped, warning } from './finding.js'

const SKEW_WARNING_MS = 30_000
/** Beyond this, signed links and new certificates fail. */
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
      advice: 'Check the spelling of the address and the network connection of this machine.',
    })
  }
}

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? error)

export interface Reached {
  readonly findings: readonly Finding[]
  readonly isReached: boolean
}

/** Sends one request without the key: any answer proves the connection. */
export async function checkConnection(ctx: Context, url: URL): Promise<Reached> {
  const { clock, interrupts } = ctx
  const startedAtMs = clock.monotonic()
  try {
    const fetch = await ctx.fetch()
    const response = await fetch({ method: 'GET', url, headers: { accept: '*/*' }, signal: interrupts.first })
    const took = Math.round(clock.monotonic() - startedAtMs)
    const date = Date.parse(response.header('date') ?? '')
    response.discard()
    const how = url.protocol === 'https:' ? 'connected, valid certificate' : 'connected'
    return {
      isReached: true,
      findings: [ok('connection', `${how} (${took} ms)`), clockFinding(date - clock.now())],
    }
  } catch (error) {
    return { isReached: false, findings: [connectionFailed(error, url), skipped('clock', 'no response')] }
  }
}

function connectionFailed(error: unknown, url: URL): Finding {
  if (error instanceof HttpFailure)
    return failed('connection', `${url.host} cannot be reached: ${error.message}`, {
      exitCode: error.isInvalidHttp ? EXIT.serviceBroken : EXIT.network,
      advice: adviceFor(error.code ?? ''),
    })
  if (!(error instanceof RushesError)) throw error
  return failed('connection', error.message, { exitCode: error.exitCode, advice: error.hint })
}

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO|ISSUER|TLS|SSL/

const adviceFor = (code: string): string => {
  if (CERTIFICATE.test(code))
    return 'This machine does not trust the certificate. For your own certificate authority, set NODE_EXTRA_CA_CERTS=<file>.'
  if (code === 'ECONNREFUSED')
    return 'Nothing listens at this address. Start a local service with `rushes serve`.'
  return 'Check the firewall. If this network needs a proxy, set HTTPS_PROXY.'
}

/** `skewMs`: the service's clock minus ours; NaN when unknown. */
export function clockFinding(skewMs: number): Finding {
  if (Number.isNaN(skewMs)) return skipped('clock', 'the response has no date')
  // The header has whole seconds, and the response took time to arrive.
  const apart = Math.round(Math.abs(skewMs) / 1_000)
  const said = `this machine's clock is ${apart} s ${skewMs < 0 ? 'ahead of' : 'behind'} the service's`
  const advice = 'Synchronize the clock (NTP). With a wrong clock, signed URLs fail.'
  if (Math.abs(skewMs) >= MAX_SKEW_MS) return failed('clock', said, { advice, exitCode: EXIT.serviceBroken })
  if (Math.abs(skewMs) >= SKEW_WARNING_MS) return warning('clock', said, advice)
  return ok('clock', apart <= 2 ? "matches the service's clock" : said)
}

/** Asks for a run that cannot exist: a valid key gets `run_not_found`, at no cost. */
export async function checkKey(ctx: Context): Promise<Finding> {
  try {
    const { client } = await ctx.connect()
    await client.get(`doctor-check-${randomBytes(8).toString('hex')}`, ctx.interrupts.first)
    return warning(
      'key',
      'the service returned a run for a random id',
      'Check the address: this may not be a runs service.',
    )
  } catch (thrown) {
    if (thrown instanceof Interruption) throw thrown
    if (thrown instanceof RushesError && thrown.code === 'run_not_found')
      return ok('key', 'accepted by the service')
    const { message, hint, exitCode } = asRushesError(thrown)
    return failed('key', message, { advice: hint, exitCode })
  }
}
