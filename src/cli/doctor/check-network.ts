/** Checks the name, connection, clock and key of the service, with two requests at most. */
import { randomBytes } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { EXIT, RushesError } from '../../errors.js'
import { type Fetch, HttpFailure, isLoopback } from '../../host/http.js'
import type { Context } from '../context/context.js'
import { asRushesError } from '../process/exit.js'
import { Interruption } from '../process/interrupts.js'
import { type Finding, ok, skipped, trouble, warning } from './finding.js'

const SKEW_WARNING_MS = 30_000
/** Beyond this, signed links and new certificates fail. */
const SKEW_TROUBLE_MS = 300_000

export async function checkName(url: URL, isProxied: boolean): Promise<Finding> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0 || isLoopback(host)) return ok('dns', `${host} needs no looking up`)
  if (isProxied) return skipped('dns', 'the proxy looks the name up')
  try {
    const { address } = await lookup(host)
    return ok('dns', `${host} is ${address}`)
  } catch (error) {
    return trouble('dns', `${host} was not found (${codeOf(error)})`, {
      exitCode: EXIT.network,
      advice: 'Is the address spelled right, and is this machine connected?',
    })
  }
}

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code ?? error)

export interface Reached {
  readonly findings: readonly Finding[]
  readonly isReached: boolean
}

/** Sends one request without the key: any answer proves the connection. */
export async function checkConnection(ctx: Context, fetch: Fetch, url: URL): Promise<Reached> {
  const { clock, interrupts } = ctx
  const startedAtMs = clock.monotonic()
  try {
    const response = await fetch({ method: 'GET', url, headers: { accept: '*/*' }, signal: interrupts.first })
    const took = Math.round(clock.monotonic() - startedAtMs)
    const date = Date.parse(response.header('date') ?? '')
    response.discard()
    const how =
      url.protocol === 'https:' ? 'the connection stands, its certificate is good' : 'the connection stands'
    return {
      isReached: true,
      findings: [ok('connection', `${how} (${took} ms)`), clockFinding(date - clock.now())],
    }
  } catch (error) {
    if (error instanceof Interruption) throw error
    if (!(error instanceof HttpFailure)) throw error
    return {
      isReached: false,
      findings: [
        trouble('connection', `${url.host} could not be reached: ${error.message}`, {
          exitCode: error.isInvalidHttp ? EXIT.serviceBroken : EXIT.network,
          advice: adviceFor(error.code ?? ''),
        }),
        skipped('clock', 'no answer'),
      ],
    }
  }
}

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO|ISSUER|TLS|SSL/

const adviceFor = (code: string): string => {
  if (CERTIFICATE.test(code))
    return 'The certificate is not trusted here. For an authority of your own: NODE_EXTRA_CA_CERTS=<file>.'
  if (code === 'ECONNREFUSED') return 'Nothing listens there. A local service is started with: rushes serve'
  return 'Is a firewall or a proxy in the way? A proxy is taken from HTTPS_PROXY.'
}

/** `skewMs`: the service's clock minus ours; NaN when unknown. */
export function clockFinding(skewMs: number): Finding {
  if (Number.isNaN(skewMs)) return skipped('clock', 'the service does not say what time it is')
  // The header is in whole seconds, and the answer took time to arrive.
  const apart = Math.round(Math.abs(skewMs) / 1_000)
  const said = `this machine's clock is ${apart} s ${skewMs < 0 ? 'ahead of' : 'behind'} the service's`
  const advice = 'Set the clock, best by NTP: links that are signed for a time fail otherwise.'
  if (Math.abs(skewMs) >= SKEW_TROUBLE_MS)
    return trouble('clock', said, { advice, exitCode: EXIT.serviceBroken })
  if (Math.abs(skewMs) >= SKEW_WARNING_MS) return warning('clock', said, advice)
  return ok('clock', apart <= 2 ? "agrees with the service's" : said)
}

/** Asks for a run that cannot exist: a valid key gets `run_not_found`, at no cost. */
export async function checkKey(ctx: Context): Promise<Finding> {
  try {
    const { client } = await ctx.connect()
    await client.get(`doctor-check-${randomBytes(8).toString('hex')}`, ctx.interrupts.first)
    return warning('key', 'the service knows a run that cannot exist', 'Is this address a runs service?')
  } catch (thrown) {
    if (thrown instanceof Interruption) throw thrown
    if (thrown instanceof RushesError && thrown.code === 'run_not_found')
      return ok('key', 'the service accepts it')
    const { message, hint, exitCode } = asRushesError(thrown)
    return trouble('key', message, { advice: hint, exitCode })
  }
}
