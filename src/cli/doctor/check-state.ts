/** Checks the state folder, the disk, and the journal with its unfinished runs. Read-only. */
import { existsSync, readdirSync, statfsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { EXIT } from '../../errors.js'
import { reasonUnwritable } from '../../host/directories.js'
import { inspectDatabase, sizeOfDatabase } from '../../host/readonly-database.js'
import { JOURNAL_MIGRATIONS } from '../../journal/migrations.js'
import type { Context } from '../context/context.js'
import { reasonOf } from '../context/state.js'
import { JOURNAL_FILE } from '../settings/folders.js'
import { plural } from '../terminal/plural.js'
import { formatBytes } from '../terminal/progress-lines.js'
import { type Finding, ok, skipped, trouble, warning } from './finding.js'

const LITTLE_BYTES = 1024 ** 3
const TOO_LITTLE_BYTES = 100 * 1024 ** 2

export function checkStateFolder(folder: string): Finding {
  const reason = reasonUnwritable(folder)
  if (reason !== undefined)
    return trouble('state', `nothing can be remembered: ${reason}`, {
      advice: 'RUSHES_STATE_DIR names a folder that can be written.',
    })
  if (!existsSync(folder)) return ok('state', `${folder} (not made yet)`)
  const mode = statSync(folder).mode & 0o777
  if (process.platform !== 'win32' && (mode & 0o077) !== 0)
    return warning('state', `${folder} is open to others (mode ${mode.toString(8)})`, `chmod 700 ${folder}`)
  return ok('state', folder)
}

/** The path, or the nearest parent that exists. */
const existing = (path: string): string =>
  existsSync(path) || dirname(path) === path ? path : existing(dirname(path))

/** `name`: `disk` for downloads, `state disk` for the journal. */
export function checkDisk(name: string, path: string): Finding {
  try {
    const { bavail, bsize } = statfsSync(existing(resolve(path)))
    return diskFinding(name, bavail * bsize, path)
  } catch (error) {
    return warning(name, `the free space cannot be told: ${reasonOf(error)}`)
  }
}

export function diskFinding(name: string, freeBytes: number, path: string): Finding {
  const said = `${formatBytes(freeBytes)} free in ${path}`
  const advice = 'Make room, or download to another disk with -o.'
  if (freeBytes < TOO_LITTLE_BYTES) return trouble(name, said, { advice, exitCode: EXIT.downloadFailed })
  return freeBytes < LITTLE_BYTES ? warning(name, said, advice) : ok(name, said)
}

/** For a database other than the journal. */
export function checkDatabase(name: string, path: string): Finding {
  if (!existsSync(path)) return ok(name, 'nothing was run there yet')
  const { integrity } = inspectDatabase(path)
  if (integrity === 'ok') return ok(name, `${path}, ${formatBytes(sizeOfDatabase(path))}, sound`)
  return trouble(name, `${path} is damaged: ${integrity}`, {
    exitCode: EXIT.serviceBroken,
    advice: 'Move it away: a new one is begun then. Runs in it are lost to --local.',
  })
}

export async function checkJournal(ctx: Context): Promise<readonly Finding[]> {
  const { stateFolder } = ctx
  const path = join(stateFolder, JOURNAL_FILE)
  const findings = [...quarantinedFilesIn(stateFolder)]
  if (!existsSync(path)) return [...findings, ok('journal', 'empty: nothing was run on this machine yet')]
  const { version, integrity } = inspectDatabase(path)
  if (version > JOURNAL_MIGRATIONS.length)
    return [
      ...findings,
      trouble('journal', `${path} was written by a newer version of rushes`, {
        advice: 'Use that version, or name another folder: RUSHES_STATE_DIR.',
      }),
    ]
  if (integrity !== 'ok')
    return [
      ...findings,
      trouble('journal', `${path} is damaged: ${integrity}`, {
        exitCode: EXIT.serviceBroken,
        advice:
          'Copy it, if you want to get something out of it. The next command sets it aside and begins a new one.',
      }),
    ]
  return [...findings, ...(await open(ctx, path))]
}

async function open(ctx: Context, path: string): Promise<readonly Finding[]> {
  try {
    const journal = await ctx.journal()
    const unfinished = journal.unfinished()
    const unconfirmed = journal.unconfirmed()
    return [
      ok('journal', `${path}, ${formatBytes(sizeOfDatabase(path))}, sound`),
      unfinished.length === 0
        ? ok('unfinished', 'no run is')
        : warning(
            'unfinished',
            `${plural(unfinished.length, 'run')}, the oldest since ${new Date(unfinished[0]?.createdAtMs ?? 0).toISOString()}`,
            `Pick them up with: rushes wait ${unfinished.every(({ address }) => address === 'local') ? '--local ' : ''}--all`,
          ),
      unconfirmed.length === 0
        ? ok('unconfirmed', 'no create is')
        : trouble('unconfirmed', unconfirmed.map(({ key, model }) => `${key} (${model})`).join(', '), {
            exitCode: EXIT.outcomeUnknown,
            advice: `A run may exist and cost money. Look in the account, then: rushes forget ${unconfirmed.map(({ key }) => key).join(' ')}`,
          }),
    ]
  } catch (error) {
    return [trouble('journal', reasonOf(error), {}), skipped('unfinished', 'no journal')]
  }
}

function quarantinedFilesIn(folder: string): readonly Finding[] {
  const names = existsSync(folder)
    ? readdirSync(folder).filter((name) => /\.damaged-[^-]+-\d+$/.test(name))
    : []
  if (names.length === 0) return []
  return [
    warning(
      'set aside',
      `damaged, and kept in ${folder}: ${names.join(', ')}`,
      'Remove them when nothing in them is wanted any more.',
    ),
  ]
}
