/**
 * Which characters the terminal can show. Drawn signs are replaced by ASCII when the locale names another character set
 * than UTF-8 (`C`, `POSIX`, `de_DE.ISO-8859-1`). Without a locale, as in most containers, UTF-8 is assumed.
 */
import type { Env } from '../process/io.js'
import { variable } from '../settings/table.js'

const SIGNS: Readonly<Record<string, string>> = { '·': '-', '…': '~', '–': '-' }
const SIGN = new RegExp(`[${Object.keys(SIGNS).join('')}]`, 'g')

/** The first variable that is set decides, as in POSIX. */
export function supportsUtf8(env: Env): boolean {
  const locale = variable(env, 'LC_ALL') ?? variable(env, 'LC_CTYPE') ?? variable(env, 'LANG')
  return locale === undefined || /utf-?8/i.test(locale)
}

export const signsFor = (env: Env): ((text: string) => string) =>
  supportsUtf8(env) ? (text) => text : (text) => text.replace(SIGN, (sign) => SIGNS[sign] ?? sign)
