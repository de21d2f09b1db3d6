/** What `rushes login --web` puts into the address of the page. Pure. */
import { printable } from '../../protocol/text.js'

export interface LoginQuery {
  readonly port: number
  readonly challenge: string
  readonly state: string
  /** Of the key, such as `rushes on laptop`. */
  readonly name: string
}

/** Undefined when the address is not one that the command makes. */
export function readLoginQuery(query: Readonly<Record<string, string>>): LoginQuery | undefined {
  const { port = '', challenge = '', state = '', name = '' } = query
  if (!/^[1-9]\d{0,4}$/.test(port) || Number(port) > 65_535) return undefined
  // The SHA-256 of the verifier as base64url.
  if (!/^[\w-]{43}$/.test(challenge)) return undefined
  if (!/^[\w-]{8,200}$/.test(state)) return undefined
  // What is shown is what the key is called.
  const shown = printable(name).trim()
  if (shown === '' || name.length > 100) return undefined
  return { port: Number(port), challenge, state, name: shown }
}

/** Only this computer, whatever the query says. */
const addressOf = ({ port, state }: LoginQuery, result: Readonly<Record<string, string>>): string =>
  `http://127.0.0.1:${port}/?${new URLSearchParams({ ...result, state })}`

export const returnAddress = (login: LoginQuery, code: string): string => addressOf(login, { code })

/** Ends the command that waits. */
export const declinedAddress = (login: LoginQuery): string => addressOf(login, { error: 'access_denied' })
