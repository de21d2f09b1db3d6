/** `--database`: a service whose database is PostgreSQL. */
import { Option } from 'commander'
import type { Env } from '../process/io.js'
import { variable } from '../settings/table.js'

const VARIABLE = 'RUSHES_DATABASE_URL'

export const databaseOption = (): Option =>
  new Option(
    '--database <url>',
    `PostgreSQL database of the service, postgres://… (default: ${VARIABLE}, else SQLite in the data folder)`,
  )

/** The variable keeps a password out of the list of processes. The store checks the URL. */
export const databaseUrlOf = (flag: string | undefined, env: Env): string | undefined =>
  flag ?? variable(env, VARIABLE)
