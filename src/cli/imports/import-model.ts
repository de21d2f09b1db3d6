/** `rushes models import`: writes the document of a hosted model from its published schema, or lists the changes since. */
import { statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { makeFolders } from '../../host/directories.js'
import { writeAtomically } from '../../host/files.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { readJson, writeJson } from '../../protocol/json.js'
import type { Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { printable, quoteWord, shortened } from '../../protocol/text.js'
import { PROVIDERS, type Provider } from '../../service/engines/hosted/providers.js'
import { readDocuments } from '../../service/models/read-documents.js'
import { documentsIn } from '../../service/models/read-models.js'
import { readTextFile } from '../../service/models/read-text-file.js'
import type { Context } from '../context/context.js'
import { withValue } from '../settings/config-file.js'
import { SETTINGS } from '../settings/table.js'
import { printTable } from '../terminal/table.js'
import { costOf, fetchFalPrices, type UnitPrice, unitPriceText } from './fal-prices.js'
import {
  type Change,
  changesBetween,
  checkText,
  createDocument,
  documentText,
  type ImportedDocument,
} from './import-document.js'
import {
  addressText,
  fetchPublished,
  getJson,
  keyOf,
  kindOf,
  type ModelAddress,
  type Published,
  parseAddress,
  readPublished,
} from './published.js'

type Json = Readonly<Record<string, unknown>>

export interface ImportOptions {
  /** A file or URL with the schema. */
  readonly from?: string
  /** Path of the document. */
  readonly output?: string
  readonly kind?: Kind
  readonly overwrite?: boolean
  readonly check?: boolean
}

export async function importCommand(
  ctx: Context,
  word: string | undefined,
  options: ImportOptions,
): Promise<number> {
  if (options.check) return await checkCommand(ctx, word, options)
  if (word === undefined)
    throw usageError(
      'Missing model. Example: rushes models import fal:fal-ai/flux/dev',
      'To compare all: add --check.',
    )
  const address = parseAddress(word)
  const folder = options.output === undefined ? await modelsFolder(ctx) : undefined
  const path = options.output ?? join(folder?.path ?? '', fileNameOf(address))
  const isReplaced = path !== '-' && isFile(path)
  if (isReplaced && !options.overwrite)
    throw usageError(
      `${path} already exists.`,
      `To see what has changed since: \`rushes models import ${word} --check\`. To replace it, add --overwrite.`,
    )
  const { value, warnings, comment } = await importDocument(ctx, address, options)
  const text = documentText(value, comment)
  checkText(text, address.model)
  for (const warning of warnings) ctx.out.warn(warning)
  if (path === '-') {
    ctx.out.line(text.trimEnd())
    return EXIT.ok
  }
  await writeDocument(path, text)
  if (folder?.isNew) {
    const { key } = SETTINGS.localModels
    await ctx.config.update(ctx.profileName, (profile) => withValue(profile, key, folder.path))
    ctx.out.note(`Set ${key} to ${folder.path}: the models of --local.`)
  }
  printResult(ctx, { value, path, result: isReplaced ? 'replaced' : 'imported' })
  if (!ctx.out.mode.json) printNext(ctx, value, path, folder !== undefined)
  return EXIT.ok
}

interface NewDocument extends ImportedDocument {
  readonly comment: readonly string[]
}

async function importDocument(
  ctx: Context,
  address: ModelAddress,
  { from, kind: asked }: ImportOptions,
): Promise<NewDocument> {
  const published =
    from === undefined ? await fetchPublished(ctx, address) : await readFrom(ctx, address, from)
  const kind = asked ?? kindOf(published)
  if (kind === 'other')
    throw usageError(`${address.model} creates neither images nor videos, so rushes cannot run it.`)
  if (kind === undefined)
    throw usageError(
      `The schema of ${address.model} does not say what the model creates.`,
      'Add --kind image or --kind video.',
    )
  const price = address.provider === 'fal' ? await findPrice(ctx, address.model) : undefined
  const cost = price && costOf(price, kind)
  const date = new Date(ctx.clock.now()).toISOString().slice(0, 10)
  const schema = from === undefined || isUrl(from) ? from : resolve(from)
  const document = createDocument({ address, published, kind, cost, from: schema, date })
  const { title } = PROVIDERS[address.provider] as Provider
  const costLine =
    price === undefined
      ? `The price of a run is not known: ${title} ${address.provider === 'fal' ? 'did not tell it' : 'does not publish it'}.`
      : `${title} charges ${unitPriceText(price)} (${date}).`
  const comment = [
    `Imported from ${title}. To see what has changed since: rushes models import ${addressText(address)} --check`,
    costLine,
    ...(cost === undefined
      ? ['For estimates and --max-cost, add the cost of a run: cost: { run: 0.05, currency: USD }']
      : []),
  ]
  return { ...document, comment }
}

const MAX_SCHEMA_MIB = 8

const isUrl = (text: string): boolean => /^https?:\/\//i.test(text) && URL.canParse(text)

async function readFrom(ctx: Context, address: ModelAddress, from: string): Promise<Published> {
  const value = isUrl(from) ? await getJson(ctx, new URL(from)) : readJsonFile(from)
  const published = readPublished(value, address)
  if (published !== undefined) return published
  throw usageError(
    `${shortened(printable(from), 200)} has no schema of a model: it has no OpenAPI document with an input.`,
    'Use the OpenAPI document of fal or of a Cog server, or the model object of the API of Replicate.',
  )
}

function readJsonFile(path: string): unknown {
  let problem = 'is not JSON'
  const text = readTextFile(path, MAX_SCHEMA_MIB, (reason) => {
    problem = reason
  })
  try {
    if (text !== undefined) return readJson(text.replace(/^\uFEFF/, ''))
  } catch {
    // Reported below.
  }
  throw usageError(`${shortened(printable(path), 200)} ${problem}.`)
}

/** Undefined if fal does not tell the price: the model can be used without it. */
async function findPrice(ctx: Context, endpoint: string): Promise<UnitPrice | undefined> {
  try {
    return (await fetchFalPrices(ctx, [endpoint])).get(endpoint)
  } catch (error) {
    if (!(error instanceof RushesError)) throw error
    const isKeyMissing = keyOf(ctx.env, PROVIDERS.fal as Provider) === undefined
    ctx.out.note(
      `The price was not read: ${error.message}${isKeyMissing ? ' Set FAL_KEY, and import with --overwrite.' : ''}`,
    )
    return undefined
  }
}

const fileNameOf = ({ model }: ModelAddress): string =>
  `${model.replace(/[^\w.-]+/g, '-').replace(/^[.-]+/, '')}.yaml`

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false

/** The folder of `local.models`. Without the setting, a folder beside the config file. */
async function modelsFolder(ctx: Context): Promise<{ readonly path: string; readonly isNew: boolean }> {
  const setting = await ctx.setting('localModels')
  if (setting === undefined) return { path: join(ctx.configFolder, 'local-models'), isNew: true }
  const path = resolve(ctx.configFolder, setting)
  if (isFile(path))
    throw usageError(
      `local.models is the file ${path}.`,
      'Name the file for the document with -o, for example -o model.yaml.',
    )
  return { path, isNew: false }
}

export async function writeDocument(path: string, text: string): Promise<void> {
  try {
    makeFolders(dirname(resolve(path)), 0o700)
    await writeAtomically(path, text)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usageError(`Cannot write ${describeError(error, path)}.`)
  }
}

interface Outcome {
  readonly value: Json
  readonly path: string
  readonly result: 'imported' | 'replaced' | 'unchanged' | 'changed'
  readonly changes?: readonly Change[]
}

function printResult({ out }: Context, { value, path, result, changes = [] }: Outcome): void {
  if (out.mode.json)
    out.json({
      ...{ model: value.name, kind: value.kind, path: resolve(path), result, cost: value.cost ?? null },
      changes: changes.map(({ path: at, before = null, after = null }) => ({ path: at, before, after })),
    })
  else if (result === 'imported' || result === 'replaced') out.line(printable(path))
}

function printNext({ out, env }: Context, value: Json, path: string, isLocal: boolean): void {
  const provider = PROVIDERS[String(isObject(value.engine) ? value.engine.type : '')]
  if (provider !== undefined && keyOf(env, provider) === undefined)
    out.note(`To run it, set ${provider.keyVariable} to your key of ${provider.title}.`)
  const prompt =
    isObject(value.input) && isObject(value.input.properties) && 'prompt' in value.input.properties
  const words = `rushes run ${value.kind} --local --model ${value.name}${prompt ? ' "a red fox"' : ''}`
  out.note(isLocal ? `Then: \`${words}\`` : `To use it: \`rushes serve --models ${quoteWord(path)}\``)
}

/** Compares the imported documents of `local.models`, or one of them, with the schemas of today. */
async function checkCommand(ctx: Context, word: string | undefined, options: ImportOptions): Promise<number> {
  const wanted = word === undefined ? undefined : addressText(parseAddress(word))
  const setting = await ctx.setting('localModels')
  const place = options.output ?? (setting === undefined ? undefined : resolve(ctx.configFolder, setting))
  const all = place === undefined ? [] : importedIn(place)
  const chosen = all.filter(({ source }) => wanted === undefined || source.model === wanted)
  if (chosen.length === 0)
    throw usageError(
      `${place ?? 'local.models'} has no imported ${wanted === undefined ? 'models' : `model ${wanted}`}.`,
      `Import one with \`rushes models import ${wanted ?? 'fal:fal-ai/flux/dev'}\`, or name its file with -o.`,
    )
  const rows: string[][] = []
  for (const { value, path, source } of chosen) {
    const address = parseAddress(String(source.model))
    const from = options.from ?? (typeof source.schema === 'string' ? source.schema : undefined)
    const kind = value.kind === 'video' ? 'video' : 'image'
    const { value: now } = await importDocument(ctx, address, { ...(from !== undefined && { from }), kind })
    const changes = changesBetween(value, 'cost' in now ? now : { ...now, cost: value.cost })
    printResult(ctx, { value, path, result: changes.length > 0 ? 'changed' : 'unchanged', changes })
    if (changes.length === 0) ctx.out.note(`${value.name} is up to date (imported on ${source.date}).`)
    rows.push(
      ...changes.map((change) => [
        String(value.name),
        change.path,
        shown(change.before),
        shown(change.after),
      ]),
    )
  }
  if (!ctx.out.mode.json && rows.length > 0)
    printTable(ctx.out, ['MODEL', 'CHANGED', 'IMPORTED', 'NOW'], rows)
  return rows.length > 0 ? EXIT.runFailed : EXIT.ok
}

const shown = (value: unknown): string =>
  value === undefined ? '-' : shortened(printable(typeof value === 'string' ? value : writeJson(value)), 60)

function importedIn(
  place: string,
): readonly { readonly value: Json; readonly path: string; readonly source: Json }[] {
  const stat = statSync(place, { throwIfNoEntry: false })
  if (stat === undefined) return []
  const files = stat.isDirectory() ? documentsIn(place) : [place]
  return files.flatMap((path) => {
    const text = readTextFile(path, MAX_SCHEMA_MIB, () => {}) ?? ''
    return readDocuments(text, path, () => {}).flatMap(({ value }) =>
      isObject(value) && isObject(value.source) && typeof value.source.model === 'string'
        ? [{ value, path, source: value.source }]
        : [],
    )
  })
}
