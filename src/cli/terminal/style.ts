/**
 * Colours and signs of a terminal. Only this file uses chalk. Each stream has its style, because one may be a terminal
 * and the other a pipe.
 */
import { Chalk } from 'chalk'
import { type Env, type OutputStream, variable } from '../process/io.js'

export type Style = InstanceType<typeof Chalk>

/** Creates the style of a stream. `NO_COLOR` overrides `FORCE_COLOR`. Without both, terminals get colour. */
export const createStyle = (stream: OutputStream, env: Env, { color }: { color: boolean }): Style =>
  new Chalk({ level: levelOf(stream, env, color) })

function levelOf(stream: OutputStream, env: Env, color: boolean): 0 | 1 {
  if (!color || variable(env, 'NO_COLOR') !== undefined) return 0
  const force = variable(env, 'FORCE_COLOR')
  if (force !== undefined) return force === '0' || force === 'false' ? 0 : 1
  return stream.isTTY === true && env.TERM !== 'dumb' ? 1 : 0
}

const SIGNS: Readonly<Record<string, string>> = { '·': '-', '…': '~', '–': '-' }
const SIGN = new RegExp(`[${Object.keys(SIGNS).join('')}]`, 'g')

/**
 * Whether the locale uses UTF-8. As in POSIX, the first variable that is set decides. True when none is set, as in most
 * containers.
 */
export function supportsUtf8(env: Env): boolean {
  const locale = variable(env, 'LC_ALL') ?? variable(env, 'LC_CTYPE') ?? variable(env, 'LANG')
  return locale === undefined || /utf-?8/i.test(locale)
}

/** Replaces special signs with ASCII for a locale without UTF-8 (`C`, `POSIX`, `de_DE.ISO-8859-1`). */
export const signsFor = (env: Env): ((text: string) => string) =>
  supportsUtf8(env) ? (text) => text : (text) => text.replace(SIGN, (sign) => SIGNS[sign] ?? sign)
