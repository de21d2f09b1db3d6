/** Checks of this machine: settings, state folder, disk and journal. They send no requests and change nothing. */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, statfsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { EXIT, RushesError } from '../../errors.js'
import { inspectDatabase } from '../../host/corruption.js'
import { sizeOfDatabase } from '../../host/database-file.js'
import { nearestFolder, reasonUnwritable } from '../../host/directories.js'
import { isPosix } from '../../host/file-system.js'
import { findProxy, isLoopback, noProxy } from '../../host/http.js'
import { asRushesError } from '../../host/interrupts.js'
import { takeLock } from '../../host/process-lock.js'
import { describeError, isBusy } from '../../host/system-error.js'
import type { Journal } from '../../journal/index.js'
import { JOURNAL_MIGRATIONS } from '../../journal/journal-run.js'
import type { Kind } from '../../protocol/models.js'
import { formatBytes } from '../../protocol/units.js'
import { LOCAL_MODELS } from '../../service/names.js'
import type { Context } from '../context/context.js'
import type { KnownModels } from '../models/known-models.js'
import type { Env } from '../process/io.js'
import { JOURNAL_FILE } from '../settings/folders.js'
import { MODEL_SETTINGS, modelFor, wrongKind } from '../settings/required-settings.js'
import { addressHint, SETTINGS } from '../settings/table.js'
import { plural } from '../terminal/format.js'
import { type Finding, failed, failedBy, ok, warning } from './finding.js'

const LOW_SPACE_BYTES = 1024 ** 3
const MIN_SPACE_BYTES = 100 * 1024 ** 2

export function checkStateFolder(folder: string): Finding {
  const reason = reasonUnwritable(folder)
  if (reason !== undefined)
    return failed('state', `Cannot write the journal: ${reason}`, {
      advice: 'Set RUSHES_STATE_DIR to a writable folder.',
    })
  if (!existsSync(folder)) return ok('state', `${folder} (not created yet)`)
  return accessFinding('state', folder, `Run: chmod 700 ${folder}`)
}

/** Warns if other users can read the file or folder. */
function accessFinding(check: string, path: string, advice: string): Finding {
  const mode = statSync(path).mode & 0o777
  return isPosix && (mode & 0o077) !== 0
    ? warning(check, `other users can read ${path} (mode ${mode.toString(8)})`, advice)
    : ok(check, path)
}

/** Checks the free space. `name`: `disk` for downloads, `state disk` for the journal. */
export function checkDisk(name: string, path: string): Finding {
  try {
    const { bavail, bsize } = statfsSync(nearestFolder(resolve(path, 'file')))
    return diskFinding(name, bavail * bsize, path)
  } catch (error) {
    return warning(name, `cannot read the free space: ${describeError(error)}`)
  }
}

export function diskFinding(name: string, freeBytes: number, path: string): Finding {
  const free = `${formatBytes(freeBytes)} free in ${path}`
  const advice = 'Free some space, or download to another disk with -o.'
  if (freeBytes < MIN_SPACE_BYTES) return failed(name, free, { advice, exitCode: EXIT.downloadFailed })
  return freeBytes < LOW_SPACE_BYTES ? warning(name, free, advice) : ok(name, free)
}

/** Checks the integrity of the database of the local service. */
export function checkLocalService(path: string, probe = hasLocks): Finding {
  const check = 'local service'
  if (!existsSync(path)) return ok(check, 'no runs yet')
  try {
    const { integrity } = inspectDatabase(path)
    if (integrity === 'ok') return ok(check, `${path}, ${formatBytes(sizeOfDatabase(path))}`)
    return failed(check, `${path} is damaged: ${integrity}`, {
      exitCode: EXIT.serviceBroken,
      advice: 'Move the file away. The next --local command creates a new one, without the earlier runs.',
    })
  } catch (error) {
    return uncheckedFinding(check, { path, error, probe })
  }
}

export async function checkJournal(ctx: Context, probe = hasLocks): Promise<readonly Finding[]> {
  const path = join(ctx.stateFolder, JOURNAL_FILE)
  if (!existsSync(path)) return [ok('journal', 'empty: no runs on this machine yet')]
  try {
    const { version, integrity } = inspectDatabase(path)
    if (version > JOURNAL_MIGRATIONS.length)
      return [
        failed('journal', `${path} was written by a newer version of rushes`, {
          advice: 'Use that version, or set RUSHES_STATE_DIR to another folder.',
        }),
      ]
    if (integrity !== 'ok')
      return [
        failed('journal', `${path} is damaged: ${integrity}`, {
          exitCode: EXIT.serviceBroken,
          advice:
            'Copy the file if you want to recover its rows. The next command renames it and creates a new journal.',
        }),
      ]
    return runFindings(await ctx.journal(), path)
  } catch (error) {
    return [uncheckedFinding('journal', { path, error, probe })]
  }
}

interface Unchecked {
  readonly path: string
  readonly error: unknown
  readonly probe: typeof hasLocks
}

/** Finding for a database that could not be read now, which proves no damage. */
function uncheckedFinding(check: string, { path, error, probe }: Unchecked): Finding {
  const cause = error instanceof RushesError ? (error.cause ?? error) : error
  if (cause instanceof RushesError) return failedBy(check, cause)
  const folder = dirname(path)
  if (!probe(folder))
    return failed(check, `could not be checked: the file system of ${folder} has no locks`, {
      advice: 'Set RUSHES_STATE_DIR to a folder on a local disk.',
    })
  const message = `could not be checked: ${describeError(cause, path)}`
  return isBusy(cause)
    ? warning(check, message, 'Run `rushes doctor` again when the other process has ended.')
    : failed(check, message, { advice: 'Check the disk, or set RUSHES_STATE_DIR to another folder.' })
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
  return [
    ok('journal', `${path}, ${formatBytes(sizeOfDatabase(path))}`),
    unfinished.length === 0
      ? ok('unfinished', 'no unfinished runs')
      : warning(
          'unfinished',
          `${plural(unfinished.length, 'run')}, the oldest from ${new Date(unfinished[0]?.createdAtMs ?? 0).toISOString()}`,
          `Wait for them with \`rushes wait ` +
            `${unfinished.every(({ address }) => address === 'local') ? '--local ' : ''}--all\`.`,
        ),
    unconfirmed.length === 0
      ? ok('unconfirmed', 'no unconfirmed runs')
      : failed(
          'unconfirmed',
          unconfirmed.map(({ key, model, address }) => `${key} (${model}, ${address})`).join(', '),
          {
            exitCode: EXIT.outcomeUnknown,
            advice:
              'A run may exist and cost money. Check the runs of your account, then remove it from the journal with ' +
              `\`rushes forget ${unconfirmed.map(({ key }) => `'${key}'`).join(' ')} --yes\`.`,
          },
        ),
  ]
}

export function quarantinedFilesIn(folder: string): readonly Finding[] {
  const names = existsSync(folder)
    ? readdirSync(folder).filter((name) => /\.damaged-[^-]+-\d+$/.test(name))
    : []
  if (names.length === 0) return []
  return [
    warning(
      'quarantine',
      `damaged files in ${folder}: ${names.join(', ')}`,
      'Delete them when you no longer need their contents.',
    ),
  ]
}

export async function checkConfig(ctx: Context): Promise<Finding> {
  const { path } = ctx.config
  if (!existsSync(path)) return ok('config', `no config file (${path})`)
  try {
    await ctx.profile()
    return accessFinding('config', path, `The file may contain the API key. Run \`chmod 600 ${path}\`.`)
  } catch (error) {
    const { message, hint } = asRushesError(error)
    return failed('config', message, { advice: hint })
  }
}

/** Checks the service URL. The result includes the parsed URL when it is valid. */
export async function checkAddress(ctx: Context): Promise<{ readonly finding: Finding; readonly url?: URL }> {
  try {
    const url = new URL(await ctx.baseUrl())
    const address = url.href.replace(/\/$/, '')
    const hint = addressHint(address)
    return {
      finding: hint === undefined ? ok('service URL', address) : warning('service URL', address, hint),
      url,
    }
  } catch (error) {
    return { finding: failedBy('service URL', error) }
  }
}

/** Checks the proxy for requests to this URL. The finding shows the proxy without its password. */
export function checkProxy(url: URL, env: Env): { readonly finding: Finding; readonly isUsed: boolean } {
  const notUsed = (finding: Finding) => ({ finding, isUsed: false })
  if (isLoopback(url.hostname)) return notUsed(ok('proxy', 'none: loopback addresses never use one'))
  try {
    const proxy = findProxy(env, url.protocol)
    if (proxy === undefined) return notUsed(ok('proxy', 'none'))
    const except = noProxy(env) === '' ? '' : `, except for ${noProxy(env)}`
    return { finding: ok('proxy', `${proxy.host}${except}`), isUsed: true }
  } catch (error) {
    return notUsed(failedBy('proxy', error))
  }
}

/** Checks the model's name, and its document if one is known on this machine. */
export async function checkModel(ctx: Context, kind: Kind): Promise<Finding> {
  const check = `${kind} model`
  try {
    const model = await modelFor(ctx, kind)
    const models = await ctx.models()
    if (model !== undefined) return modelFinding(check, { model, kind, models })
    const { environment, key } = SETTINGS[MODEL_SETTINGS[kind]]
    return warning(
      check,
      'not set',
      `Set ${environment} or run \`rushes config set ${key} <provider/name>\`; ` +
        `or add --model to each \`rushes run ${kind}\`.\nThe local service (\`rushes serve\`, --local) has ` +
        `${LOCAL_MODELS[kind]}.`,
    )
  } catch (error) {
    return failedBy(check, error)
  }
}

interface SetModel {
  readonly model: string
  readonly kind: Kind
  readonly models: KnownModels
}

function modelFinding(check: string, { model, kind, models }: SetModel): Finding {
  const document = models.find(model)
  if (document !== undefined && document.kind !== kind)
    return failedBy(check, wrongKind(document, kind, false))
  if (models.isInvalid(model))
    return warning(
      check,
      `${model} has an invalid document`,
      'Its parameters are not checked; use it with --input.',
    )
  return document !== undefined || !models.hasList
    ? ok(check, model)
    : warning(
        check,
        `${model} is not in the service's list of models`,
        'Run `rushes models --refresh` to see its models, then change the setting.',
      )
}
