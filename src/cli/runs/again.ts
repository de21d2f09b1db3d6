/** The command that creates a run again, from what the journal holds of it. */
import type { Journal, JournalRun } from '../../journal/index.js'
import { KINDS } from '../../protocol/models.js'
import { isSentImage, runWords, type SentImage } from '../../protocol/parameters.js'
import { isHttpUrl, isObject } from '../../protocol/parse.js'
import { printableJson, quoteWord } from '../../protocol/text.js'
import { LOCAL_MODELS } from '../../service/names.js'
import type { Context } from '../context/context.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { isOnDisk } from './journal-rows.js'
import { flagsFor } from './where.js'

export interface Again {
  /** For a POSIX shell, on one line. */
  readonly command: string
  /** Sentences about inputs of the run that the command does not repeat. */
  readonly missing: readonly string[]
}

type Input = Readonly<Record<string, unknown>>

/** The outputs of earlier runs, as reference images are looked up among them. */
export type EarlierOutputs = Pick<Journal, 'findByOutput' | 'pathsWithContent'>

export const againOf = async (ctx: Context, journal: EarlierOutputs, run: JournalRun): Promise<Again> =>
  commandAgain(journal, run, await flagsFor(ctx, run))

/** `flags`: with which a command reaches the run. */
export function commandAgain(journal: EarlierOutputs, run: JournalRun, flags: readonly string[]): Again {
  const kind = KINDS.find((each) => each === run.kind)
  const input: Input = isObject(run.input) ? run.input : {}
  const { image_urls: images, ...others } = input
  const sources = Array.isArray(images) ? images.map((image) => sourceOf(journal, run, image)) : []
  const areFlags = kind !== undefined && Array.isArray(images) && !sources.includes(undefined)
  const { words, rest } = kind === undefined ? { words: [], rest: others } : runWords(kind, others)
  const left = areFlags || images === undefined ? rest : { ...rest, image_urls: images }
  const model = run.address === LOCAL_ADDRESS && kind !== undefined && run.model === LOCAL_MODELS[kind]
  const found = areFlags ? sources.flatMap((source) => source?.word ?? []) : []
  return {
    command: [
      'rushes run',
      ...(kind === undefined ? ['model', quoteWord(run.model)] : [kind]),
      ...words,
      ...found.flatMap((word) => ['-i', quoteWord(word)]),
      ...(kind === undefined || Object.keys(left).length > 0
        ? ['--input', quoteWord(printableJson(left))]
        : []),
      ...(kind === undefined || model ? [] : ['--model', quoteWord(run.model)]),
      ...flags,
    ].join(' '),
    missing: [
      ...(areFlags ? sources.flatMap((source) => source?.missing ?? []) : []),
      ...dataIn(left).map(lostImage),
    ],
  }
}

interface Source {
  readonly word?: string
  readonly missing?: string
}

/** The value of `-i` for an image of the run. Undefined if it is neither a URL nor an image that was sent. */
function sourceOf(journal: EarlierOutputs, { address }: JournalRun, image: unknown): Source | undefined {
  if (isSentImage(image)) {
    const path = journal
      .pathsWithContent(image.sha256)
      .find((each) => isOnDisk({ path: each, bytes: image.bytes }))
    return path === undefined ? { missing: lostImage(image) } : { word: path }
  }
  if (typeof image !== 'string' || !isHttpUrl(image)) return undefined
  const earlier = outputOf(journal, address, image)
  if (earlier !== undefined) return { word: earlier }
  // The port of the local service ended with its process.
  return address === LOCAL_ADDRESS && new URL(image).hostname === '127.0.0.1'
    ? { missing: `Its reference image ${image} is no longer available.` }
    : { word: image }
}

/** `run:<id>` where the link is that of an earlier run: it may have expired since. */
function outputOf(journal: EarlierOutputs, address: string, image: string): string | undefined {
  const { pathname } = new URL(image)
  if (pathname.length < 2) return undefined
  const run = journal.findByOutput(address, pathname)
  const at = run?.urls.findIndex((url) => isHttpUrl(url) && new URL(url).pathname === pathname) ?? -1
  if (run?.id === undefined || at === -1) return undefined
  return at === 0 ? `run:${run.id}` : `run:${run.id}#${at + 1}`
}

const lostImage = ({ content_type, bytes, sha256 }: SentImage): string =>
  `The journal does not contain its reference image (${content_type}, ${bytes} bytes, sha256 ${sha256}).`

/** Every stored data: URL within a value. */
function dataIn(value: unknown): readonly SentImage[] {
  if (isSentImage(value)) return [value]
  if (Array.isArray(value)) return value.flatMap(dataIn)
  return isObject(value) ? Object.values(value).flatMap(dataIn) : []
}
