/** The account that a provider charges, for `rushes doctor --models` and the start of `rushes serve`. */
import { readText } from '../../../host/receive-text.js'
import { isObject, parseJson } from '../../../protocol/parse.js'
import { printable, shortened } from '../../../protocol/text.js'
import type { EngineParts } from '../read-engine.js'
import { UpstreamError } from '../upstream/upstream-error.js'
import type { Provider } from './providers.js'

const MAX_BYTES = 262_144

/**
 * Resolves with a few words, such as `balance 24.5 USD`. Rejects if the key is refused or the provider cannot be reached.
 * Any other answer tells nothing about the key.
 */
export async function describeAccount(
  { title, api, scheme }: Provider,
  key: string,
  { fetch }: Pick<EngineParts, 'fetch'>,
  signal: AbortSignal,
): Promise<string> {
  const get = async (path: string) => {
    const headers = { accept: 'application/json', authorization: `${scheme} ${key}` }
    const response = await fetch({ method: 'GET', url: new URL(`${api}/${path}`), headers, signal })
    const body = parseJson(await readText(response, MAX_BYTES))
    return { status: response.status, body: body.ok && isObject(body.value) ? body.value : {} }
  }
  const isFal = scheme === 'Key'
  const { status, body } = await get(isFal ? 'account/billing?expand=credits' : 'account')
  // fal has one status for a wrong key and for a key that may not read the balance.
  if (status === 401 && (!isFal || (await get('models?limit=1')).status === 401))
    throw new UpstreamError(`${title} refused the key (401).`, { status })
  if (isFal && (status === 401 || status === 403)) return 'the balance needs a key with the scope ADMIN'
  const { current_balance: balance, currency = 'USD' } = isObject(body.credits) ? body.credits : {}
  if (typeof balance === 'number') return printable(`balance ${balance} ${currency}`)
  const name = body.username ?? body.name
  return typeof name === 'string' ? shortened(printable(`account ${name}`), 100) : 'the balance is not known'
}
