/** Checks of this machine: settings, models, disk and journal. They send no requests and change nothing. */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, statfsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { EXIT, RushesError } from '../../errors.js'
import { inspectDatabase } from '../../host/corruption.js'
import { sizeOfDatabase } from '../../host/database-file.js'
import { nearestFolder, reasonUnwritable } from '../../host/directories.js'
import { isPosix } from '../../host/file-system.js'
import { asRushesError } from '../../host/interrupts.js'
import { takeLock } from '../../host/process-lock.js'
import { describeError, isBusy } from '../../host/system-error.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { JOURNAL_MIGRATIONS } from '../../journal/rows.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { formatBytes } from '../../protocol/units.js'
import { LOCAL_MODELS } from '../../service/names.js'
import type { Context } from '../context/context.js'
import type { KnownModels } from '../models/known-models.js'
import { JOURNAL_FILE, LOCAL_FOLDER } from '../settings/folders.js'
import { MODEL_SETTINGS, modelFor, wrongKind } from '../settings/required-settings.js'
import { SETTINGS } from '../settings/table.js'
import { plural } from '../terminal/format.js'
import { combined, type Finding, failed, failedBy, ok, warning } from './finding.js'

export async function checkConfig(ctx: Context): Promise<Finding> {
  const { path } = ctx.config
  const profile = ctx.profileName === 'default' ? '' : `, profile ${ctx.profileName}`
  if (!existsSync(path)) return ok('config', `no config file (${path})${profile}`)
  try {
    await ctx.profile()
    const advice = `The file may contain the API key. Run \`chmod 600 ${path}\`.`
    return accessFinding('config', path, advice) ?? ok('config', `${path}${profile}`)
  } catch (error) {
    const { message, hint } = asRushesError(error)
    return failed('config', message, { advice: hint })
  }
}

/** Warns if other users can read the file or folder. */
function accessFinding(check: string, path: string, advice: string): Finding | undefined {
  const mode = statSync(path).mode & 0o777
  return isPosix && (mode & 0o077) !== 0
    ? warning(check, `other users can read ${path} (mode ${mode.toString(8)})`, advice)
    : undefined
}

/** Checks the names of the models, and their documents if they are known. `hasService`: whether one is configured. */
export async function checkModels(ctx: Context, hasService: boolean): Promise<Finding> {
  const parts = KINDS.map(async (kind): Promise<Finding> => {
    try {
      const model = await modelFor(ctx, kind)
      if (model !== undefined) return modelFinding({ model, kind, models: await ctx.models() })
      if (!hasService) return ok('models', `${kind}: ${LOCAL_MODELS[kind]} with --local`)
      const { environment, key } = SETTINGS[MODEL_SETTINGS[kind]]
      return warning(
        'models',
        `${kind}: not set`,
        `Set ${environment} or run \`rushes config set ${key} <provider/name>\`; or add --model to each \`rushes run ${kind}\`.`,
      )
    } catch (error) {
      return failedBy('models', error)
    }
  })
  return combined('models', await Promise.all(parts))
}

interface SetModel {
  readonly model: string
  readonly kind: Kind
  readonly models: KnownModels
}

function modelFinding({ model, kind, models }: SetModel): Finding {
  const document = models.find(model)
  if (document !== undefined && document.kind !== kind)
    return failedBy('models', wrongKind(document, kind, false))
  if (models.isInvalid(model))
    return warning(
      'models',
      `${model} has an invalid document`,
      'Its parameters are not checked; use it with --input.',
    )
  return document !== undefined || models.listedAtMs === undefined
    ? ok('models', `${kind}: ${model}`)
    : warning(
        'models',
        `${model} is not in the service's list of models`,
        'Run `rushes models --refresh` to see its models, then change the setting.',
      )
}

const LOW_SPACE_BYTES = 1024 ** 3
const MIN_SPACE_BYTES = 100 * 1024 ** 2

/** Checks the free space for downloads in the current folder, and for the journal. */
export const checkDisk = (stateFolder: string): Finding =>
  combined(
    'disk',
    ['.', stateFolder].map((path) => {
      try {
        const { bavail, bsize } = statfsSync(nearestFolder(resolve(path, 'file')))
        return diskFinding(bavail * bsize, path)
      } catch (error) {
        return warning('disk', `cannot read the free space: ${describeError(error)}`)
      }
    }),
  )

export function diskFinding(freeBytes: number, path: string): Finding {
  const free = `${formatBytes(freeBytes)} free in ${path}`
  const advice = 'Free some space, or download to another disk with -o.'
  if (freeBytes < MIN_SPACE_BYTES) return failed('disk', free, { advice, exitCode: EXIT.downloadFailed })
  return freeBytes < LOW_SPACE_BYTES ? warning('disk', free, advice) : ok('disk', free)
}

const CHECK = 'journal'

/** Checks the state folder and its databases. */
export async function checkJournal(ctx: Context): Promise<Finding> {
  const { stateFolder, globals } = ctx
  const reason = reasonUnwritable(stateFolder)
  if (reason !== undefined)
    return failed(CHECK, `Cannot write the journal: ${reason}`, {
      advice: 'Set RUSHES_STATE_DIR to a writable folder.',
    })
  const access = existsSync(stateFolder)
    ? accessFinding(CHECK, stateFolder, `Run: chmod 700 ${stateFolder}`)
    : undefined
  return combined(CHECK, [
    ...(access === undefined ? [] : [access]),
    ...quarantinedFilesIn(stateFolder),
    ...(await journalFindings(ctx)),
    ...(globals.local ? [checkLocalService(join(stateFolder, LOCAL_FOLDER, 'service.db'))] : []),
  ])
}

function quarantinedFilesIn(folder: string): readonly Finding[] {
  const names = existsSync(folder)
    ? readdirSync(folder).filter((name) => /\.damaged-[^-]+-\d+$/.test(name))
    : []
  if (names.length === 0) return []
  return [
    warning(
      CHECK,
      `damaged files in ${folder}: ${names.join(', ')}`,
      'Delete them when you no longer need their contents.',
    ),
  ]
}

/** Checks the integrity of the database of the local service. */
export function checkLocalService(path: string, probe = hasLocks): Finding {
  if (!existsSync(path)) return ok(CHECK, 'no local runs yet')
  try {
    const { integrity } = inspectDatabase(path)
    if (integrity === 'ok') return ok(CHECK, `${path}, ${formatBytes(sizeOfDatabase(path))}`)
    return failed(CHECK, `${path} is damaged: ${integrity}`, {
      exitCode: EXIT.serviceBroken,
      advice: 'Move the file away. The next --local command creates a new one, without the earlier runs.',
    })
  } catch (error) {
    return uncheckedFinding({ path, error, probe })
  }
}

async function journalFindings(ctx: Context, probe = hasLocks): Promise<readonly Finding[]> {
  const path = join(ctx.stateFolder, JOURNAL_FILE)
  if (!existsSync(path)) return [ok(CHECK, 'empty: no runs on this machine yet')]
  try {
    const { version, integrity } = inspectDatabase(path)
    if (version > JOURNAL_MIGRATIONS.length)
      return [
        failed(CHECK, `${path} was written by a newer version of rushes`, {
          advice: 'Use that version, or set RUSHES_STATE_DIR to another folder.',
        }),
      ]
    if (integrity !== 'ok')
      return [
        failed(CHECK, `${path} is damaged: ${integrity}`, {
          exitCode: EXIT.serviceBroken,
          advice:
            'Copy the file if you want to recover its rows. The next command renames it and creates a new journal.',
        }),
      ]
    return runFindings(await ctx.journal(), path)
  } catch (error) {
    return [uncheckedFinding({ path, error, probe })]
  }
}

interface Unchecked {
  readonly path: string
  readonly error: unknown
  readonly probe: typeof hasLocks
}

/** Finding for a database that could not be read now, which proves no damage. */
function uncheckedFinding({ path, error, probe }: Unchecked): Finding {
  const cause = error instanceof RushesError ? (error.cause ?? error) : error
  if (cause instanceof RushesError) return failedBy(CHECK, cause)
  const folder = dirname(path)
  if (!probe(folder))
    return failed(CHECK, `could not be checked: the file system of ${folder} has no locks`, {
      advice: 'Set RUSHES_STATE_DIR to a folder on a local disk.',
    })
  const message = `could not be checked: ${describeError(cause, path)}`
  return isBusy(cause)
    ? warning(CHECK, message, 'Run `rushes doctor` again when the other process has ended.')
    : failed(CHECK, message, { advice: 'Check the disk, or set RUSHES_STATE_DIR to another folder.' })
}

/** Takes and removes a lock. True for a folder that cannot be written, which another check reports. */
function hasLocks(folder: string): boolean {
  if (reasonUnwritable(folder) !== undefined) return true
  const lock = takeLock(join(folder, `doctor-${randomBytes(8).toString('hex')}`))
  lock?.remove()
  return lock !== undefined
}

function runFindings(journal: Journal, path: string): readonly Finding[] {
  const unfinished = journal.unfinished()
  const unconfirmed = journal.unconfirmed()
  const where = `${path}, ${formatBytes(sizeOfDatabase(path))}`
  const flags = unfinished.every(({ address }) => address === 'local') ? '--local --all' : '--all'
  return [
    unfinished.length === 0
      ? ok(CHECK, where)
      : ok(
          CHECK,
          `${where}, ${plural(unfinished.length, 'unfinished run')}`,
          `Wait for them with \`rushes wait ${flags}\`.`,
        ),
    ...(unconfirmed.length === 0 ? [] : [unconfirmedFinding(unconfirmed)]),
  ]
}

const unconfirmedFinding = (unconfirmed: readonly JournalRun[]): Finding =>
  failed(
    CHECK,
    `unconfirmed: ${unconfirmed.map(({ key, model, address }) => `${key} (${model}, ${address})`).join(', ')}`,
    {
      exitCode: EXIT.outcomeUnknown,
      advice:
        'A run may exist and cost money. Check the runs of your account, then remove it from the journal with ' +
        `\`rushes forget ${unconfirmed.map(({ key }) => `'${key}'`).join(' ')} --yes\`.`,
    },
  )
