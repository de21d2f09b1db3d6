/** Colours and signs of a terminal; the only use of chalk. Each stream has a style: one may be a terminal, the other a pipe. */
import type { Env, OutputStream } from '../process/io.js'
import { variable } from '../settings/table.js'

type Paint = (text: string) => string

const PAINTS = ['bold', 'dim', 'green', 'red', 'yellow'] as const

export type Style = { readonly level: number } & Readonly<Record<(typeof PAINTS)[number], Paint>>

/** Without colour, chalk is not loaded. */
const PLAIN: Style = {
  level: 0,
  ...(Object.fromEntries(PAINTS.map((name) => [name, (text: string) => text])) as Record<
    (typeof PAINTS)[number],
    Paint
  >),
}

/** `NO_COLOR` overrides `FORCE_COLOR`; without both, terminals get colour. */
export async function createStyle(
  stream: OutputStream,
  env: Env,
  { color }: { color: boolean },
): Promise<Style> {
  const level = levelOf(stream, env, color)
  if (level === 0) return PLAIN
  const { Chalk } = await import('chalk')
  return new Chalk({ level })
}

function levelOf(stream: OutputStream, env: Env, color: boolean): 0 | 1 {
  if (!color || variable(env, 'NO_COLOR') !== undefined) return 0
  const force = variable(env, 'FORCE_COLOR')
  if (force !== undefined) return force === '0' || force === 'false' ? 0 : 1
  return stream.isTTY === true && env.TERM !== 'dumb' ? 1 : 0
}

const SIGNS: Readonly<Record<string, string>> = { '·': '-', '…': '~', '–': '-' }
const SIGN = new RegExp(`[${Object.keys(SIGNS).join('')}]`, 'g')

/** The first variable that is set decides, as in POSIX. True without one, as in most containers. */
export function supportsUtf8(env: Env): boolean {
  const locale = variable(env, 'LC_ALL') ?? variable(env, 'LC_CTYPE') ?? variable(env, 'LANG')
  return locale === undefined || /utf-?8/i.test(locale)
}

/** Replaces drawn signs by ASCII for a locale of another character set (`C`, `POSIX`, `de_DE.ISO-8859-1`). */
export const signsFor = (env: Env): ((text: string) => string) =>
  supportsUtf8(env) ? (text) => text : (text) => text.replace(SIGN, (sign) => SIGNS[sign] ?? sign)
