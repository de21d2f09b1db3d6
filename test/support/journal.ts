/** The journal of a home, looked at from outside while or after a command works on it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Journal, type JournalRun, openJournal } from '../../src/journal/index.js'

/** Opens it, works, and closes it. */
export function withJournal<Result>(home: string, work: (journal: Journal) => Result): Result {
  const journal = openJournal({
    path: join(home, 'state', 'journal.db'),
    now: () => Date.now(),
    onQuarantine(name) {
      throw new Error(`the journal is damaged: ${name}`)
    },
  })
  try {
    return work(journal)
  } finally {
    journal.close()
  }
}

/** Every row, the newest first. */
export const rowsOf = (home: string): readonly JournalRun[] =>
  withJournal(home, (journal) => journal.list({}))

/** Everything that the state folder holds, as bytes. */
export function stateBytes(home: string): Buffer {
  const folder = join(home, 'state')
  if (!existsSync(folder)) return Buffer.alloc(0)
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  return Buffer.concat(files.map(({ name }) => readFileSync(join(folder, name))))
}
