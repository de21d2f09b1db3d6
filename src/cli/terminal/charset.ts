/**
 * What the terminal can show. Messages are ASCII but for what they quote; what is drawn has signs of its own, and a locale
 * that names another character set than UTF-8 (`C`, `POSIX`, `de_DE.ISO-8859-1`) gets them in ASCII. Nothing set at all, as
 * in most containers, says nothing about the terminal, and those of today are UTF-8.
 */
import type { Env } from '../process/io.js'
import { variable } from '../settings/table.js'

const SIGNS: Readonly<Record<string, string>> = { '·': '-', '…': '~' }
const SIGN = new RegExp(`[${Object.keys(SIGNS).join('')}]`, 'g')

/** By the first that is set, as in POSIX. */
export function speaksUtf8(env: Env): boolean {
  const locale = variable(env, 'LC_ALL') ?? variable(env, 'LC_CTYPE') ?? variable(env, 'LANG')
  return locale === undefined || /utf-?8/i.test(locale)
}

export const signsFor = (env: Env): ((text: string) => string) =>
  speaksUtf8(env) ? (text) => text : (text) => text.replace(SIGN, (sign) => SIGNS[sign] ?? sign)
