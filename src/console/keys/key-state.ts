/** Whether a key works, and if not, why. Pure. */
import type { ConsoleKey } from '../../protocol/console.js'

export type KeyState = 'active' | 'paused' | 'expired' | 'spent' | 'used-up'

export const KEY_STATES: Readonly<
  Record<KeyState, { readonly label: string; readonly tone: 'good' | 'neutral' | 'warn' | 'bad' }>
> = {
  active: { label: 'Active', tone: 'good' },
  paused: { label: 'Paused', tone: 'neutral' },
  expired: { label: 'Expired', tone: 'bad' },
  spent: { label: 'Spend limit reached', tone: 'warn' },
  'used-up': { label: 'Quota used up', tone: 'warn' },
}

/** In the order in which the service checks. */
export function stateOf(key: ConsoleKey, now: number): KeyState {
  if (key.disabled) return 'paused'
  if (key.expires_at != null && Date.parse(key.expires_at) <= now) return 'expired'
  if (key.spend_limit != null && key.spent >= key.spend_limit) return 'spent'
  if (key.quota != null && key.used >= key.quota) return 'used-up'
  return 'active'
}

const SHELL_SAFE = /^[\w@%+=:,./-]+$/
const quoted = (text: string) => (SHELL_SAFE.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

/** The lines that let `rushes` use the key in a terminal. */
export const exportLines = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    .map(([name, value]) => `export ${name}=${quoted(value)}`)
    .join('\n')
