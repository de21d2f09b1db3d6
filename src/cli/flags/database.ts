/** `--database`: a service whose database is PostgreSQL. */
import { Option } from 'commander'
import { usageError } from '../../errors.js'
import type { Env } from '../process/io.js'
import { variable } from '../settings/table.js'

export const DATABASE_VARIABLE = 'RUSHES_DATABASE_URL'

export const databaseOption = (): Option =>
  new Option(
    '--database <url>',
    `PostgreSQL database of the service, postgres://… (default: ${DATABASE_VARIABLE}, else SQLite in the data folder)`,
  )

/** The variable keeps a password out of the list of processes. Throws `usage`; the message never has the URL. */
export function databaseUrlOf(flag: string | undefined, env: Env): string | undefined {
  const url = flag ?? variable(env, DATABASE_VARIABLE)
  if (url === undefined || (/^postgres(ql)?:\/\//i.test(url) && URL.canParse(url))) return url
  throw usageError(
    `${flag === undefined ? DATABASE_VARIABLE : '--database'} is not a valid PostgreSQL URL.`,
    'Use the form postgres://user:password@host:5432/database, with special characters of the password percent-encoded.',
  )
}

/** For messages. */
export function withoutPassword(url: string): string {
  const shown = new URL(url)
  shown.password = ''
  // Parameters may have a password too.
  shown.search = ''
  return shown.href
}
