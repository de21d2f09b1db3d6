/** What a run is created from: its input with the outputs that it uses, and which parts of it have changed. Pure. */
import { MediaSummary } from '../../protocol/media.js'
import type { ModelInput } from '../../protocol/models.js'
import { type InputHashes, type Made, outputsOf } from '../lock/lock.js'
import { meaningWith } from '../manifest/local-images.js'
import type { ManifestEntry, RowReference } from '../manifest/manifest-entry.js'

type Entry = Pick<ManifestEntry, 'input' | 'meaning' | 'references'>

export type Meaning =
  | { readonly ok: true; readonly meaning: ModelInput }
  /** `why`: a reference cannot be used. */
  | { readonly ok: false; readonly why: string }

/** `madeOf`: what there is of each row that the entry uses. */
export function meaningOfEntry(entry: Entry, madeOf: (name: string) => Made | undefined): Meaning {
  const { references } = entry
  if (!usesRows(entry)) return { ok: true, meaning: entry.meaning }
  const summaries = new Map<RowReference, MediaSummary>()
  for (const reference of references) {
    if (reference.from !== 'row') continue
    const output = outputsOf(madeOf(reference.source))[reference.output - 1]
    if (output === undefined) return { ok: false, why: missingOutput(reference, madeOf(reference.source)) }
    const { sha256, bytes, content_type } = output
    if (!content_type.startsWith('image/'))
      return { ok: false, why: `${reference.text} is not an image (${content_type || 'unknown type'})` }
    summaries.set(reference, new MediaSummary(sha256, bytes, content_type))
  }
  return { ok: true, meaning: meaningWith(entry, (each) => summaries.get(each) as MediaSummary) }
}

const missingOutput = ({ text, source, output }: RowReference, made: Made | undefined): string =>
  made?.inputs === undefined
    ? `the lock file does not have output ${output} of "${source}"; delete the file of "${source}" to download its outputs again`
    : `${text}: the run of "${source}" has ${outputCount((made.outputs?.length ?? 0) + 1)}`

const outputCount = (count: number): string => (count === 1 ? 'one output' : `${count} outputs`)

const usesRows = ({ references }: Pick<Entry, 'references'>): boolean =>
  references.some(({ from }) => from === 'row')

const nameOf = ({ source, output }: RowReference): string =>
  `row:${source}${output === 1 ? '' : `#${output}`}`

type Identity = (model: string, input: unknown, parameter?: string) => string

const HASH_DIGITS = 8

/** A short hash of each input. An output that is used counts by its bytes; those that do not exist yet are left out. */
export function inputHashes(
  { input, meaning, references }: Entry,
  madeOf: (name: string) => Made | undefined,
  identity: Identity,
): InputHashes {
  const hash = (value: unknown, name: string) => identity('', value, name).slice(0, HASH_DIGITS)
  const { image_urls, ...others } = meaning
  const rows = references.flatMap((each) => {
    const sha256 = each.from === 'row' ? outputsOf(madeOf(each.source))[each.output - 1]?.sha256 : undefined
    return each.from !== 'row' || sha256 === undefined
      ? []
      : [[nameOf(each), sha256.slice(0, HASH_DIGITS)] as const]
  })
  const images = references.map((each) => {
    if (each.from === 'row') return null
    return each.from === 'file' ? each.summary : each.text
  })
  const hashes = [
    ...Object.entries(others).map(([name, value]) => [name, hash(value, name)] as const),
    ...(input.image_urls === undefined
      ? []
      : [['image_urls', hash(references.length === 0 ? image_urls : images, 'image_urls')] as const]),
    ...rows,
  ]
  return Object.fromEntries(hashes.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The names of the inputs that differ. `waitsFor`: rows whose outputs will be others. Empty where it is not known. */
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
  // A row that is used no longer, or under another name, is seen in the list.
  const isLeft = (name: string) => name.startsWith('row:') && now.inputs[name] === undefined
  const said = changed.filter((name) => !isLeft(name))
  return [
    ...(made.model === now.model ? [] : ['model']),
    ...said,
    ...(said.length === 0 && changed.length > 0 && waiting.length === 0 ? ['image_urls'] : []),
    ...waiting,
  ]
}
