/**
 * Puts new databases in place as copies, because creating one takes ten times as long, most of it for the migrations.
 * Each is created once a worker, by the program. Tests of the creation and of migrations do without.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { systemClock } from '../../src/host/clock.js'
import { openDatabase } from '../../src/host/database.js'
import { JOURNAL_MIGRATIONS } from '../../src/journal/rows.js'
import { SharedWindow } from '../../src/limiter/shared-window.js'
import { SQLITE_SCRIPTS } from '../../src/service/store/sqlite/index.js'

interface NewDatabase {
  /** The file, a character a byte. */
  readonly content: string
  /** Each copy has its own, like a created file. */
  readonly id: string | undefined
}

const CREATE = {
  journal: (path: string) => createDatabase(path, JOURNAL_MIGRATIONS, 'SELECT id FROM state_folder'),
  service: (path: string) => createDatabase(path, SQLITE_SCRIPTS, 'SELECT database_id AS id FROM format'),
  limits(path: string) {
    new SharedWindow({ path, keyHash: '', clock: systemClock }).close()
    return undefined
  },
}

function createDatabase(path: string, migrations: readonly string[], selectId: string): string {
  const database = openDatabase({ path, migrations })
  const id = String(database.get(selectId)?.id)
  database.close()
  return id
}

function create(kind: keyof typeof CREATE): NewDatabase {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-new-'))
  const path = join(folder, 'new.db')
  const id = CREATE[kind](path)
  const content = readFileSync(path, 'latin1')
  rmSync(folder, { recursive: true })
  return { content, id }
}

const created = new Map<keyof typeof CREATE, NewDatabase>()

/** Does nothing if the file exists. Returns the path. */
export function readyDatabase(kind: keyof typeof CREATE, path: string): string {
  if (existsSync(path)) return path
  const { content, id } = created.get(kind) ?? create(kind)
  created.set(kind, { content, id })
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const own = id === undefined ? content : content.replaceAll(id, randomBytes(id.length / 2).toString('hex'))
  writeFileSync(path, own, { encoding: 'latin1', mode: 0o600 })
  return path
}
