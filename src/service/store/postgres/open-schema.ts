/** Creates the schema at the first start, and explains why a database cannot be used. */
import { type RushesError, usageError } from '../../../errors.js'
import { errorCode } from '../../../host/system-error.js'
import { checkUrl, explainConnection, nameOf } from './connection-errors.js'
import { type Client, createClient, FORMAT_LOCK, LOCKS } from './driver.js'
import { SCHEMA, SCHEMA_VERSION } from './schema.js'

const MIN_VERSION = 14

export interface SchemaOptions {
  /**
   * Whether to create a missing schema. If false, throws for a database without the schema, because the URL is probably
   * wrong.
   */
  readonly make?: boolean
}

/** Creates the schema if it is missing. Throws `RushesError` (usage). Processes that start at once wait for each other. */
export async function openSchema(url: string, { make = true }: SchemaOptions = {}): Promise<void> {
  checkUrl(url)
  const client = await connect(url)
  try {
    await checkServer(client, url)
    await client.query('BEGIN')
    await client.query(`SELECT pg_advisory_xact_lock(${LOCKS}, ${FORMAT_LOCK})`)
    const version = await findVersion(client, url)
    if (version !== 0 && version !== SCHEMA_VERSION)
      throw usageError(
        `${nameOf(url)} was written by another version of rushes: it has format ${version}, ` +
          `and this version reads format ${SCHEMA_VERSION}.`,
        'Use that version, or another database (--database).',
      )
    if (version === 0) {
      if (!make)
        throw usageError(
          `${nameOf(url)} contains no data of a service.`,
          'Check the name of the database. `rushes serve --database` creates the data when it starts.',
        )
      await client.query(`CREATE SCHEMA IF NOT EXISTS rushes; SET LOCAL search_path = rushes; ${SCHEMA}`)
    }
    await client.query('COMMIT')
  } catch (error) {
    throw explainRights(url, error) ?? explainConnection(url, error) ?? error
  } finally {
    await client.end().catch(() => {})
  }
}

async function connect(url: string): Promise<Client> {
  try {
    const client = createClient(url)
    // The error also rejects the running statement. Without a listener, the process would exit.
    client.on('error', () => {})
    await client.connect()
    return client
  } catch (error) {
    throw explainConnection(url, error) ?? error
  }
}

async function checkServer(client: Client, url: string): Promise<void> {
  const { rows } = await client.query(`
    SELECT current_setting('server_version_num')::integer / 10000 AS version,
      current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS "isReplica",
      current_setting('transaction_read_only') = 'on' AS "isReadOnly"`)
  const { version, encoding, isReplica, isReadOnly } = rows[0] as {
    version: number
    encoding: string
    isReplica: boolean
    isReadOnly: boolean
  }
  if (version < MIN_VERSION)
    throw usageError(
      `${nameOf(url)} is PostgreSQL ${version}; rushes needs ${MIN_VERSION} or later.`,
      'Update the server, or use another one (--database).',
    )
  if (encoding !== 'UTF8')
    throw usageError(
      `${nameOf(url)} has the encoding ${encoding}; rushes needs UTF8.`,
      "Create a database for it: `CREATE DATABASE rushes ENCODING 'UTF8' TEMPLATE template0`.",
    )
  if (isReplica)
    throw usageError(
      `${nameOf(url)} is on a read-only replica.`,
      'Use the address of the primary server (--database).',
    )
  if (isReadOnly) throw readOnly(url)
}

const readOnly = (url: string): RushesError =>
  usageError(
    `${nameOf(url)} is read-only.`,
    'Use the primary server (--database), or set default_transaction_read_only to off for this database.',
  )

/**
 * Returns the version of the schema, or 0 if the schema can be created. Throws if the database belongs to another
 * program.
 */
async function findVersion(client: Client, url: string): Promise<number> {
  const { rows } = await client.query(`
    SELECT to_regnamespace('rushes') IS NOT NULL AS "hasSchema", to_regclass('rushes.format') IS NOT NULL AS "hasFormat",
      (SELECT count(*)::integer FROM pg_class
       WHERE relkind IN ('r', 'p', 'f', 'm', 'v') AND relnamespace = to_regnamespace('rushes')) AS tables,
      EXISTS (
        SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
        WHERE relkind IN ('r', 'p', 'f', 'm') AND relpersistence <> 't'
          AND nspname <> 'information_schema' AND nspname NOT LIKE 'pg\\_%'
          -- Extensions bring tables of their own.
          AND NOT EXISTS (SELECT 1 FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')
      ) AS "hasTables"`)
  const found = rows[0] as { hasSchema: boolean; hasFormat: boolean; tables: number; hasTables: boolean }
  if (found.hasFormat)
    return Number((await client.query('SELECT version FROM rushes.format')).rows[0]?.version)
  const isForeign = found.hasSchema ? found.tables > 0 : found.hasTables
  if (isForeign)
    throw usageError(
      `${nameOf(url)} is the database of another program, not of a service.`,
      found.hasSchema
        ? 'Its schema "rushes" has other tables. Use another database (--database).'
        : 'Use a database of its own (`CREATE DATABASE rushes`). To share this one, run `CREATE SCHEMA rushes` in it first.',
    )
  return 0
}

/** Explains missing rights. Returns undefined for other errors. */
function explainRights(url: string, error: unknown): RushesError | undefined {
  if (errorCode(error) === '42501')
    return usageError(
      `The user of ${nameOf(url)} may not create or use the schema "rushes": ${(error as Error).message}.`,
      'Grant it: `GRANT CREATE ON DATABASE <name> TO <user>`, or make this user the owner of the database.',
    )
  return errorCode(error) === '25006' ? readOnly(url) : undefined
}
