/** `rushes models`: shows the models and their parameters, adds and removes documents, and asks for the service's list. */
import type { Command } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import { describeError, errorCode, isSystemError } from '../../host/system-error.js'
import { documentJson } from '../../protocol/model-document.js'
import {
  describeValues,
  KINDS,
  type Kind,
  listedValues,
  MODEL_INPUTS,
  type ModelDocument,
  type ParameterSchema,
} from '../../protocol/models.js'
import { amountText, cheapestInput, dearestInput, decimalText, millionthsOf } from '../../protocol/price.js'
import { capitalized, didYouMean, orList, shortened } from '../../protocol/text.js'
import type { SourceProblem } from '../../service/models/read-models.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { defaultText, flagsOf } from '../flags/model-flags.js'
import type { ImportOptions } from '../imports/import-model.js'
import {
  addModel,
  builtInDocument,
  findAdded,
  type KnownModel,
  type KnownModels,
  listAdded,
  removeModel,
} from '../models/known-models.js'
import { openPrices, type Prices } from '../models/prices.js'
import { decodeUtf8, readPath, readStdin } from '../process/io.js'
import { modelsByKind } from '../settings/settings.js'
import { plural } from '../terminal/format.js'
import type { Output } from '../terminal/output.js'
import { printTable } from '../terminal/table.js'

interface ModelsFlags {
  readonly refresh?: boolean
}

export function register(command: Command, { act }: CommandEnvironment): void {
  command
    .argument('[name]', `Only this model: ${orList(KINDS)}, or the name of a model`)
    .option('--refresh', 'Ask the service for its models')
  act(command, modelsCommand)
  const add = command
    .command('add')
    .description("Add models from a file, which override the service's")
    .argument('<file>', 'Model file, as YAML or JSON; - reads standard input')
  act(add, addCommand)
  const imports = command
    .command('import')
    .description('Write the model file of a model of a hosted provider from its published schema')
    .argument('<model>', 'Model, as fal:<endpoint>, replicate:<owner/name[:version]> or openrouter:<id>')
    .option('--from <file or url>', 'Read the schema from here (default: from the provider)')
    .option('-o, --output <path>', 'Write the model file here (default: into the folder of local.models)')
  const importModel = async (ctx: Context, options: ImportOptions, model: string) => {
    const { importCommand } = await import('../imports/import-model.js')
    return importCommand(ctx, model, options)
  }
  act(imports, importModel, { ignoresLocal: true })
  const remove = command
    .command('remove')
    .description('Remove a model that was added')
    .argument('<name>', 'Name of the model')
  act(remove, removeCommand)
}

export async function modelsCommand(
  ctx: Context,
  { refresh = false }: ModelsFlags,
  name?: string,
): Promise<number> {
  const { out } = ctx
  const models = await ctx.models()
  await askForModels(ctx, models, refresh)
  const kind = KINDS.find((each) => each === name)
  if (name === undefined) await printModels(out, await shownModels(ctx, models), await openPrices(ctx))
  else if (kind !== undefined) await printModel(out, kind, builtInDocument(kind))
  else await printModel(out, name, await findModel(ctx, models, name), await openPrices(ctx))
  return EXIT.ok
}

/** `isRequired`: a service that does not answer is an error. */
async function askForModels(ctx: Context, models: KnownModels, isRequired: boolean): Promise<void> {
  if (ctx.globals.local && isRequired)
    throw usageError(
      '--refresh asks a service; with --local there is none.',
      'Leave out --refresh or --local.',
    )
  const outcome = await models.ask()
  if (!isRequired) return
  if (outcome.kind === 'failed') throw outcome.error
  const address = await ctx.address()
  if (outcome.kind === 'none') ctx.out.note(`${address} has no list of models: ${outcome.reason}.`)
  else {
    const count = models.list().filter(({ source }) => source === 'service').length
    ctx.out.note(`${address} has ${plural(count, 'model')}.`)
  }
}

/** The known models; for a kind without one, its built-in schema under the name of the model that is set. */
async function shownModels(ctx: Context, models: KnownModels): Promise<readonly ShownModel[]> {
  const known = models.list()
  const set = await modelsByKind(ctx)
  const builtIn = KINDS.filter((kind) =>
    known.every(({ document: { kind: ofKind, name } }) =>
      set[kind] === undefined ? ofKind !== kind : name !== set[kind],
    ),
  )
  return [
    ...known,
    ...builtIn.map((kind) => ({
      document: builtInDocument(kind, set[kind] ?? kind),
      source: 'built-in' as const,
    })),
  ].map((each) => ({ ...each, isDefault: set[each.document.kind] === each.document.name }))
}

/** Throws `usage` for a model that is not known. */
async function findModel(ctx: Context, models: KnownModels, name: string): Promise<ModelDocument> {
  const found = models.find(name)
  if (found !== undefined) return found
  const set = await modelsByKind(ctx)
  const kind = KINDS.find((each) => set[each] === name)
  if (kind !== undefined) {
    ctx.out.note(`${name} has no model file. These are the built-in parameters of ${kind} models.`)
    return builtInDocument(kind, name)
  }
  const names = [...KINDS, ...models.list().map(({ document }) => document.name)]
  throw usageError(
    models.isInvalid(name)
      ? `The model file of ${name} is not valid.`
      : `Unknown model "${shortened(name, 200)}".${didYouMean(name, names)} ` +
          `Use ${orList(KINDS)}, or a name from \`rushes models\`.`,
    'For another published model, use `rushes run model <provider/name> --input <json>`, ' +
      'or add its model file with `rushes models add <file>`.',
  )
}

async function addCommand(ctx: Context, _flags: object, file: string): Promise<number> {
  const documents = await readDocumentsOf(ctx, file)
  for (const document of documents) {
    const isReplaced = findAdded(ctx.configFolder, document.name) !== undefined
    await addModel(ctx.configFolder, document).catch(refuseChange)
    report(ctx, document.name, isReplaced ? 'replaced' : 'added')
  }
  return EXIT.ok
}

/** Throws `usage` with all problems. */
async function readDocumentsOf(
  { stdin, interrupts }: Context,
  file: string,
): Promise<readonly ModelDocument[]> {
  const shownFile = file === '-' ? 'standard input' : file
  const bytes =
    file === '-'
      ? await readStdin(stdin, 'the model', interrupts.first)
      : await readPath(file, { signal: interrupts.first })
  const text = decodeUtf8(bytes)
  if (text === undefined) throw usageError(`${shownFile} is not UTF-8 text.`)
  const { problemsError, readDocuments, readOwnDocument } = await import(
    '../../service/models/read-models.js'
  )
  const problems: SourceProblem[] = []
  const sources = readDocuments(text, shownFile, (problem) => problems.push(problem))
  const names = new Set<string>()
  const documents = sources.flatMap((source): readonly ModelDocument[] => {
    const document = readOwnDocument(source)
    if (document === undefined) return []
    if (names.has(document.name)) source.report(['name'], `"${document.name}" occurs twice in the file`)
    names.add(document.name)
    return [document]
  })
  if (problems.length === 0) return documents
  throw problemsError(`${shownFile} has`, problems, '; nothing was added')
}

async function removeCommand(ctx: Context, _flags: object, name: string): Promise<number> {
  const { configFolder } = ctx
  try {
    await removeModel(configFolder, name)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') refuseChange(error)
    const added = [...listAdded(configFolder).values()]
    const names = added.flatMap((document) => (typeof document === 'object' ? [document.name] : []))
    throw usageError(
      `${shortened(name, 200)} is not an added model.${didYouMean(name, names)}`,
      names.length === 0 ? 'Add one with `rushes models add <file>`.' : `Added models: ${names.join(', ')}.`,
    )
  }
  report(ctx, name, 'removed')
  return EXIT.ok
}

/** Throws `usage` for a config folder that cannot be written. */
function refuseChange(error: unknown): never {
  if (!isSystemError(error)) throw error
  throw usageError(`Cannot write ${describeError(error)}.`, 'To use another folder, set RUSHES_CONFIG_DIR.')
}

function report({ out }: Context, name: string, result: 'added' | 'replaced' | 'removed'): void {
  out.answer({ model: name, result })
  out.note(`${capitalized(result)} ${name}.`)
}

interface ShownModel {
  readonly document: ModelDocument
  readonly source: KnownModel['source'] | 'built-in'
  /** Whether `rushes run <kind>` uses it without `--model`. */
  readonly isDefault: boolean
}

const schemaOfKind = (kind: Kind) => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  ...MODEL_INPUTS[kind],
})

const cell = (text: string, maxLength = 200): string => shortened(text, maxLength)

/** The document with its effective price, and where that comes from. */
function pricedJson(document: ModelDocument, prices: Prices) {
  const { price = null, source = null, currency = null } = prices.find(document) ?? {}
  return { ...documentJson(document), price, price_source: source, currency }
}

async function printModels(out: Output, models: readonly ShownModel[], prices: Prices): Promise<void> {
  if (out.mode.json) {
    const schemas = Object.fromEntries(KINDS.map((kind) => [kind, schemaOfKind(kind)]))
    const documents = models.map(({ document, source, isDefault }) => ({
      ...pricedJson(document, prices),
      default: isDefault,
      source,
    }))
    out.json({ ...schemas, models: documents }, out.stdoutIsTerminal ? 2 : undefined)
    return
  }
  const rows = models.map(({ document, source, isDefault }) => [
    document.name,
    document.kind,
    priceText(document, prices),
    source,
    isDefault ? 'default' : '',
  ])
  await printTable(out, ['NAME', 'KIND', 'PRICE', 'SOURCE', 'DEFAULT'], rows)
}

/** Rows of parameters, and one of the price. `title`: the model or kind, in the first column. `prices`: not for a kind. */
async function printModel(
  out: Output,
  title: string,
  document: ModelDocument,
  prices?: Prices,
): Promise<void> {
  if (out.mode.json) {
    const json = prices ? pricedJson(document, prices) : schemaOfKind(document.kind)
    return out.json(json, out.stdoutIsTerminal ? 2 : undefined)
  }
  const { input } = document
  const price = prices?.find(document)?.price
  const flags = flagsOf(input)
  const rows = Object.entries(input.properties).map(([name, schema]) => [
    title,
    flags.get(name) ?? `input.${name}`,
    input.required.includes(name) ? 'required' : 'optional',
    cell(valuesText(schema)),
    cell(`${schema.description}${defaultText(schema)}${flags.has(name) ? '' : ' (set with --input)'}`.trim()),
  ])
  const factors = Object.entries(price?.factors ?? {}).flatMap(([name, byValue]) =>
    Object.entries(byValue).map(([value, factor]) => `${name} ${value}: ×${factor}`),
  )
  const priceRow = [title, 'price', '', prices ? priceText(document, prices) : '', cell(factors.join(', '))]
  await printTable(
    out,
    ['MODEL', 'FLAG', 'REQUIRED', 'VALUES', 'DESCRIPTION'],
    price === undefined ? rows : [...rows, priceRow],
    { optional: ['REQUIRED'] },
  )
}

/** The listed values, or the type without its article. */
const valuesText = (schema: ParameterSchema): string =>
  listedValues(schema)?.join(' ') ?? describeValues(schema, ' ').replace(/^a /, '')

/** The lowest and the highest price of a run: `1–2 credits`. Empty if the price is not known. */
function priceText(document: ModelDocument, prices: Prices): string {
  const found = prices.find(document)
  if (found === undefined) return ''
  const { input } = document
  const { price, source, currency } = found
  const [low = 0, high = 0] = [cheapestInput, dearestInput].map((extreme) =>
    millionthsOf({ input, price }, extreme(price, input)),
  )
  const amount =
    low === high ? amountText(low, currency) : `${decimalText(low)}–${decimalText(high)} ${currency}`
  return source === 'config' ? `${amount} (config)` : amount
}
