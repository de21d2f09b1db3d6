/**
 * Decides the action of one run of a manifest, in this order: download paid outputs before paying again; do not repeat
 * a create whose outcome is unknown; replace an unknown file only with `--overwrite`. Pure.
 */
import { identityOf } from '../../protocol/identity.js'
import { MEDIA_NOUNS, MediaSummary } from '../../protocol/media.js'
import { type MediaSource, withMedia } from '../../protocol/media-parameters.js'
import { type InputHashes, type Made, outputsOf } from '../lock/lock.js'
import type { ManifestEntry, RowReference } from '../manifest/manifest-entry.js'
import { contentOf } from '../manifest/references.js'
import type { Flight } from './flights.js'

/** State of the path of an output. */
export type FileFact =
  | ({ readonly is: 'missing' } & Elsewhere)
  /** `sha256` is undefined if the file cannot match any hash in the lock file. */
  | ({
      readonly is: 'file'
      readonly sha256: string | undefined
      /**
       * Set if the lock file lists the file as another output. It may then be replaced, because its row moves it or no
       * longer uses it. `of`: name of a row that keeps the file because `--only` leaves that row out. The file is then
       * not replaced.
       */
      readonly known?: { readonly of: string | undefined } | undefined
    } & Elsewhere)
  /** A folder or a device. Never replaced. */
  | { readonly is: 'other'; readonly what: string }

interface Elsewhere {
  /** Absolute path of the locked output's file, if the output was renamed and the file is still at its old path. */
  readonly elsewhere?: string | undefined
}

export interface RowFlags {
  readonly force: boolean
  /** `--force` with `--only`: create again even if the last run of the row has not ended. */
  readonly forcePending: boolean
  readonly overwrite: boolean
  readonly resubmitUnconfirmed: boolean
}

export type RowAction =
  | { readonly do: 'up_to_date' }
  /** `--only` does not select the row. */
  | { readonly do: 'skip' }
  | DownloadAction
  | CreateAction
  /** The last create may have created a run, so it is not sent again. */
  | { readonly do: 'unconfirmed'; readonly key: string | undefined }
  | ConflictAction
  | BlockedAction

/** A file that must not be replaced exists at the path of an output. */
interface ConflictAction {
  readonly do: 'conflict'
  readonly why: string
  /** Index of the conflicting output. */
  readonly at: number
  /** Whether no row has made the file. `--overwrite` replaces it. */
  readonly isForeign: boolean
}

/** An output that the row needs will not exist. */
export interface BlockedAction {
  readonly do: 'blocked'
  readonly why: string
  /** Name of the blocking row. Undefined if the reference itself is invalid. */
  readonly by: string | undefined
}

/** The run exists. Follows it to its end if necessary, and downloads its outputs. Free of charge. */
export interface DownloadAction {
  readonly do: 'download'
  /** `moved`: the outputs exist at other paths on this machine, and are moved without a request. */
  readonly why: 'unfinished' | 'missing' | 'changed' | 'moved'
  readonly run: string
  /** Index of the first output that is not at its path. */
  readonly at: number
}

/** Creates a run, which is paid for. */
export interface CreateAction {
  readonly do: 'create'
  readonly why: 'missing' | 'out_of_date' | 'forced' | 'unconfirmed'
  /** Inputs that changed since the file was made. Empty if the lock file does not list the inputs. */
  readonly changed?: readonly string[]
}

interface RowSituation {
  /** Hash of model and input. Undefined without a model, or until all outputs that the row uses exist. */
  readonly hash: string | undefined
  readonly locked: Made | undefined
  readonly flight: Flight | undefined
  /** Files that a killed batch has given their names. Default: those of `flight`. */
  readonly placed?: Flight['files']
  /** Whether the journal of another state folder knows what is in flight: every row without a result may be. */
  readonly isElsewhere: boolean
  /** State of the path of each output. */
  readonly facts: readonly FileFact[]
  readonly flags: RowFlags
}

export function decide(situation: RowSituation): RowAction {
  const { hash, locked, flight, isElsewhere: isUnknown, facts, flags } = situation
  const isAsMade = locked !== undefined && locked.hash === hash
  const known = outputsOf(locked)
  const at = known.findIndex(
    ({ sha256 }, index) => !isInPlace(facts[index], sha256) || isElsewhere(facts[index]),
  )
  const pathConflict = conflictIn(situation, isAsMade)

  if (flight?.run !== undefined) {
    if (pathConflict !== undefined) return pathConflict
    if (flags.forcePending) return { do: 'create', why: 'forced' }
    return { do: 'download', why: 'unfinished', run: flight.run, at: 0 }
  }
  const isUnconfirmed = flight !== undefined || (isUnknown && !isAsMade)
  // Also if the file is at its path: a create with --force may have been paid for.
  if (isUnconfirmed && !flags.resubmitUnconfirmed) return { do: 'unconfirmed', key: flight?.key }
  if (isAsMade && at === -1 && !flags.force && !isUnconfirmed) return { do: 'up_to_date' }
  if (pathConflict !== undefined) return pathConflict
  if (isUnconfirmed) return { do: 'create', why: 'unconfirmed' }
  if (locked === undefined) return { do: 'create', why: 'missing' }
  if (flags.force) return { do: 'create', why: 'forced' }
  if (!isAsMade) return { do: 'create', why: 'out_of_date' }
  return { do: 'download', why: whyDownload(facts, known), run: locked.run, at }
}

export const isInPlace = (fact: FileFact | undefined, sha256: string | undefined): boolean =>
  fact?.is === 'file' && sha256 !== undefined && fact.sha256 === sha256

/** Also where a file with the same bytes is at the path of the output: another row may move that file. */
const isElsewhere = (fact: FileFact | undefined): boolean =>
  fact !== undefined && fact.is !== 'other' && fact.elsewhere !== undefined

/** Whether the file belongs to another locked output that will move or is no longer used. */
export const isReplaceable = (fact: FileFact): boolean =>
  fact.is === 'file' && fact.known !== undefined && fact.known.of === undefined

function whyDownload(
  facts: readonly FileFact[],
  known: readonly { readonly sha256: string }[],
): DownloadAction['why'] {
  const absent = known.flatMap(({ sha256 }, index) => (isInPlace(facts[index], sha256) ? [] : facts[index]))
  const gone = absent.filter((fact) => !isElsewhere(fact))
  if (gone.length === 0) return 'moved'
  return gone[0]?.is === 'missing' ? 'missing' : 'changed'
}

/** Finds the first output whose path has a file that must not be replaced. */
function conflictIn(
  { facts, locked, flight, placed = flight?.files ?? [], flags }: RowSituation,
  isAsMade: boolean,
): ConflictAction | undefined {
  const known = outputsOf(locked)
  for (const [at, fact] of facts.entries()) {
    if (fact.is === 'other') return { do: 'conflict', why: fact.what, at, isForeign: false }
    if (fact.is === 'missing') continue
    if ([known[at], ...placed].some((each) => isInPlace(fact, each?.sha256)) || isReplaceable(fact)) continue
    if (fact.known?.of !== undefined)
      return {
        do: 'conflict',
        why: `the file of "${fact.known.of}", which --only leaves out`,
        at,
        isForeign: false,
      }
    if (flags.overwrite) continue
    const isChanged = isAsMade && known[at] !== undefined && fact.elsewhere === undefined
    return {
      do: 'conflict',
      why: isChanged ? 'changed since it was downloaded' : 'not created by this batch',
      at,
      isForeign: true,
    }
  }
  return undefined
}

type InputEntry = Pick<ManifestEntry, 'input' | 'identityInput' | 'undocumentedInput' | 'references'>

type ResolvedInput =
  | ({ readonly ok: true } & Pick<InputEntry, 'identityInput' | 'undocumentedInput'>)
  /** `why`: reason why a reference cannot be used. */
  | { readonly ok: false; readonly why: string }

/** Returns the input with outputs of other rows replaced by their summaries. `madeOf`: the last run of each row. */
export function identityInputOf(
  entry: InputEntry,
  madeOf: (name: string) => Made | undefined,
): ResolvedInput {
  const { identityInput, undocumentedInput } = entry
  if (!entry.references.some(({ from }) => from === 'row'))
    return { ok: true, identityInput, undocumentedInput }
  const sources: MediaSource[] = []
  for (const reference of entry.references) {
    const { place } = reference
    if (reference.from !== 'row') {
      sources.push({ ...place, value: contentOf(reference) })
      continue
    }
    const made = madeOf(reference.source)
    const output = outputsOf(made)[reference.output - 1]
    if (output === undefined) return { ok: false, why: missingOutput(reference, made) }
    const { sha256, bytes, content_type } = output
    const [found] = content_type.split('/')
    if (reference.type !== 'file' && found !== reference.type)
      return {
        ok: false,
        why: `${reference.text} is not ${MEDIA_NOUNS[reference.type]} (${content_type || 'unknown type'})`,
      }
    sources.push({ ...place, value: new MediaSummary(sha256, bytes, content_type) })
  }
  return {
    ok: true,
    identityInput: withMedia(entry.input, sources),
    undocumentedInput: undocumentedInput && withMedia(undocumentedInput, sources),
  }
}

const missingOutput = ({ text, source, output }: RowReference, made: Made | undefined): string =>
  made?.inputs === undefined
    ? `the lock file does not have output ${output} of "${source}"; delete the file of "${source}" to download its outputs again`
    : `${text}: the run of "${source}" has ${outputCount((made.outputs?.length ?? 0) + 1)}`

const outputCount = (count: number): string => (count === 1 ? 'one output' : `${count} outputs`)

const nameOf = ({ source, output }: RowReference): string =>
  `row:${source}${output === 1 ? '' : `#${output}`}`

const HASH_DIGITS = 8

/**
 * Returns a short hash of each input. Outputs of other rows are hashed by their bytes. Outputs that do not exist yet
 * are omitted.
 */
export function inputHashes(
  { identityInput, references }: InputEntry,
  madeOf: (name: string) => Made | undefined,
): InputHashes {
  const hash = (value: unknown, name: string) => identityOf('', value, name).slice(0, HASH_DIGITS)
  const rows = references.flatMap((each) => {
    const sha256 = each.from === 'row' ? outputsOf(madeOf(each.source))[each.output - 1]?.sha256 : undefined
    return each.from !== 'row' || sha256 === undefined
      ? []
      : [[nameOf(each), sha256.slice(0, HASH_DIGITS)] as const]
  })
  // The outputs of rows have their own hashes.
  const own = withMedia(
    identityInput,
    references.map((each) => ({ ...each.place, value: each.from === 'row' ? null : contentOf(each) })),
  )
  const hashes = [...Object.entries(own).map(([name, value]) => [name, hash(value, name)] as const), ...rows]
  return Object.fromEntries(hashes.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Returns the names of changed inputs; empty if unknown. `waitsFor`: rows whose outputs will change. */
export function changedInputs(
  made: Made,
  now: { readonly model: string | undefined; readonly inputs: InputHashes },
  waitsFor: readonly string[],
): readonly string[] {
  const { inputs: before } = made
  const waiting = waitsFor.map((name) => `row:${name}`)
  const isWaiting = (name: string) => waiting.some((each) => name === each || name.startsWith(`${each}#`))
  const names = before === undefined ? [] : [...new Set([...Object.keys(now.inputs), ...Object.keys(before)])]
  const changed = names.filter((name) => !isWaiting(name) && before?.[name] !== now.inputs[name])
  // A removed or renamed row is reported as a change of `image_urls`.
  const isNoLongerUsed = (name: string) => name.startsWith('row:') && now.inputs[name] === undefined
  const stillUsed = changed.filter((name) => !isNoLongerUsed(name))
  return [
    ...(made.model === now.model ? [] : ['model']),
    ...stillUsed,
    ...(stillUsed.length === 0 && changed.length > 0 && waiting.length === 0 ? ['image_urls'] : []),
    ...waiting,
  ]
}
