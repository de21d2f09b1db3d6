/** Builds the command that creates a run again, from its row in the journal. */
import { existsSync } from 'node:fs'
import { basename, dirname, relative, sep } from 'node:path'
import { numbered } from '../../batch/manifest/output-paths.js'
import { safeName } from '../../download/file-names.js'
import type { Journal, JournalFile, JournalRun } from '../../journal/index.js'
import { KINDS } from '../../protocol/models.js'
import { outputOfLink } from '../../protocol/output-link.js'
import { builtInSchema, isSentImage, runWords, type SentImage } from '../../protocol/parameters.js'
import { isHttpUrl, isObject } from '../../protocol/parse.js'
import { printableJson, quoteWord } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { createKnownModels, type KnownModels } from '../models/known-models.js'
import { type LocalEngine, readEngines, typedWord } from '../models/local-engine.js'
import { localDocuments } from '../models/local-models.js'
import { createQuickSettings } from '../settings/quick-settings.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { sizeOf } from './journal-rows.js'
import { addressOr, flagsFor } from './where.js'

export interface Again {
  /** One line for a POSIX shell. */
  readonly command: string
  /** Sentences about inputs that the command cannot repeat. */
  readonly missing: readonly string[]
  /** Says that the command writes beside a file that exists. */
  readonly note?: string | undefined
}

type Input = Readonly<Record<string, unknown>>

/** Returns the command with the labels and the output of the run. If that file exists, with the next free name beside it. */
export async function againOf(ctx: Context, journal: Journal, run: JournalRun): Promise<Again> {
  const isLocal = run.address === LOCAL_ADDRESS && run.kind !== undefined
  const engine = isLocal ? readEngines(ctx.stateFolder).find(({ name }) => name === run.model) : undefined
  const models = await modelsOf(ctx, run, engine)
  const output = outputOf(run, journal.filesOf(run))
  // `--engine` implies `--local`.
  const flags = [...output.flags, ...(engine === undefined ? await flagsAgain(ctx, run) : [])]
  return { ...commandAgain(journal, run, { flags, models, engine }), note: output.note }
}

/** The command has no other flags, so it also needs those with which this one reached the run. */
async function flagsAgain(ctx: Context, run: JournalRun): Promise<readonly string[]> {
  const { profile, baseUrl } = ctx.globals
  if (run.address === LOCAL_ADDRESS) return ['--local']
  const missing = await flagsFor(ctx, run)
  const isHere = (await addressOr(ctx)) === run.address
  const given = (flag: string, value: string | undefined) =>
    value === undefined || !isHere || missing.includes(flag) ? [] : [flag, quoteWord(value)]
  return [...missing, ...given('--profile', profile), ...given('--base-url', baseUrl)]
}

interface Output {
  readonly flags: readonly string[]
  readonly note?: string
}

/** The path of the first output. Without a file that has its own name, the folder is enough. */
function outputOf({ id = '', address }: JournalRun, files: readonly JournalFile[]): Output {
  const file = files.findLast(({ url }) => url === files[0]?.url)
  if (file === undefined) return { flags: [] }
  const path = relative('.', file.path)
  const shown = path.startsWith('..') ? file.path : path
  if (isNamedById(id, basename(file.path))) {
    const inFolder = ['-o', quoteWord(`${dirname(shown)}${sep}`)]
    return { flags: dirname(shown) !== '.' ? inFolder : address === LOCAL_ADDRESS ? [] : ['-d'] }
  }
  const free = freeNameFor(shown)
  const flags = ['-o', quoteWord(free)]
  if (free === shown) return { flags }
  const replacing = `-o ${quoteWord(shown)} --overwrite`
  return { flags, note: `${shown} exists, so the command writes ${free}. To replace it, use ${replacing}.` }
}

/** Returns `fox.png`, or the first of `fox-2.png`, `fox-3.png` … that does not exist: also for `fox-2.png` beside `fox.png`. */
function freeNameFor(path: string): string {
  if (!existsSync(path)) return path
  const first = path.replace(/-\d+(?=\.\w+$)/, '')
  const base = existsSync(first) ? first : path
  for (let number = 2; ; number++) {
    const free = numbered(base, number)
    if (!existsSync(free)) return free
  }
}

const isNamedById = (id: string, name: string): boolean => {
  const stem = safeName(id)
  return name.startsWith(stem) && /^(-\d+)?\.\w+$/.test(name.slice(stem.length))
}

/** The models of the run's service, which may be another one than that of the command. */
export async function modelsOf(
  ctx: Context,
  { address, profile }: JournalRun,
  engine?: LocalEngine,
): Promise<KnownModels> {
  const { configFolder, stateFolder, env, globals } = ctx
  if (address !== LOCAL_ADDRESS) {
    const account = await createQuickSettings(env, { ...globals, profile }).account(address)
    return createKnownModels({ configFolder, stateFolder, address, account })
  }
  try {
    if (engine === undefined) return await ctx.withLocal().models()
    const local = await localDocuments({ path: undefined, configFolder, env, engine })
    return createKnownModels({ configFolder, stateFolder, address, local })
  } catch {
    // `local.models` or a workflow cannot be read. The command then names its model.
    return createKnownModels({ configFolder, stateFolder, address, local: [] })
  }
}

interface AgainOptions {
  /** Flags that the command needs to reach the service of the run. */
  readonly flags: readonly string[]
  readonly models: KnownModels
  /** The engine of `--engine` that the run was created with. */
  readonly engine?: LocalEngine | undefined
}

export function commandAgain(
  journal: Journal,
  run: JournalRun,
  { flags, models, engine }: AgainOptions,
): Again {
  const kind = KINDS.find((each) => each === run.kind)
  const input: Input = isObject(run.input) ? run.input : {}
  const { image_urls: images, ...others } = input
  const sources = Array.isArray(images) ? images.map((image) => sourceOf(journal, run, image)) : []
  const areFlags = kind !== undefined && Array.isArray(images) && !sources.includes(undefined)
  const { words, rest } =
    kind === undefined
      ? { words: [], rest: others }
      : runWords(models.find(run.model)?.input ?? builtInSchema(kind), others)
  const left = areFlags || images === undefined ? rest : { ...rest, image_urls: images }
  const isDefaultModel =
    run.address === LOCAL_ADDRESS && kind !== undefined && run.model === models.defaultOf(kind)?.name
  const imageWords = areFlags ? sources.flatMap((source) => source?.word ?? []) : []
  return {
    command: [
      'rushes run',
      ...(kind === undefined ? ['model', quoteWord(run.model)] : [kind]),
      ...words,
      ...imageWords.flatMap((word) => ['-i', quoteWord(word)]),
      ...(kind === undefined || Object.keys(left).length > 0
        ? ['--input', quoteWord(printableJson(left))]
        : []),
      ...(kind === undefined || isDefaultModel ? [] : ['--model', quoteWord(run.model)]),
      ...run.labels.flatMap((label) => ['--label', quoteWord(label)]),
      ...(engine === undefined ? [] : ['--engine', quoteWord(typedWord(engine))]),
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

/**
 * Returns the value of `-i` for an image of the run. Undefined if the image is neither a URL nor an image that was
 * sent.
 */
function sourceOf(journal: Journal, run: JournalRun, image: unknown): Source | undefined {
  if (isSentImage(image)) {
    const path = journal.pathsWithContent(image.sha256).find((each) => sizeOf(each) === image.bytes)
    return path === undefined ? { missing: lostImage(image) } : { word: path }
  }
  if (typeof image !== 'string' || !isHttpUrl(image)) return undefined
  const earlier = earlierOutput(journal, run, image)
  if (earlier !== undefined) return { word: earlier }
  // A URL of the local service is no longer valid: its port closed with its process.
  return run.address === LOCAL_ADDRESS && new URL(image).hostname === '127.0.0.1'
    ? { missing: `Its reference image ${image} is no longer available.` }
    : { word: image }
}

/** Returns `run:<id>` if the URL is an output of an earlier run: the URL may have expired. */
function earlierOutput(journal: Journal, run: JournalRun, image: string): string | undefined {
  const found = journal.findByOutput(run, image, linkIn(run))
  if (found === undefined) return undefined
  return found.index === 0 ? `run:${found.id}` : `run:${found.id}#${found.index + 1}`
}

/** Returns the function that compares links of a run. Each `--local` process has its own port. */
export const linkIn = ({ address }: JournalRun): ((link: string) => string) =>
  address === LOCAL_ADDRESS
    ? (link) => outputOfLink(link).replace(/^http:\/\/127\.0\.0\.1(:\d+)?/, '')
    : outputOfLink

const lostImage = ({ content_type, bytes, sha256 }: SentImage): string =>
  `The journal does not contain its reference image (${content_type}, ${bytes} bytes, sha256 ${sha256}).`

/** Returns each stored data: URL within a value. */
function dataIn(value: unknown): readonly SentImage[] {
  if (isSentImage(value)) return [value]
  if (Array.isArray(value)) return value.flatMap(dataIn)
  return isObject(value) ? Object.values(value).flatMap(dataIn) : []
}
