/** `rushes models`: shows the models and their parameters, adds and removes documents, and asks for the service's list. */
import type { Command } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import { describeError, errorCode, isSystemError } from '../../host/system-error.js'
import { documentJson } from '../../protocol/model-document.js'
import {
  describeValues,
  KINDS,
  listedValues,
  type ModelDocument,
  type ParameterSchema,
} from '../../protocol/models.js'
import { amountText, cheapestInput, dearestInput, decimalText, millionthsOf } from '../../protocol/price.js'
import { capitalized, didYouMean, shortened } from '../../protocol/text.js'
import type { SourceProblem } from '../../service/models/read-models.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { defaultText, flagsOf } from '../flags/model-flags.js'
import type { ImportOptions } from '../imports/import-model.js'
import {
  addModel,
  builtInDocument,
  type KnownModel,
  type KnownModels,
  removeModel,
} from '../models/known-models.js'
import { openPrices, type Prices } from '../models/prices.js'
import { modelsByKind } from '../settings/settings.js'
import type { Output } from '../terminal/output.js'
import { printTable } from '../terminal/table.js'

interface ModelsFlags {
  readonly refresh?: boolean
}

export function register(command: Command, { act }: CommandEnvironment): void {
  command
    .argument('[name]', 'Only this model')
    .option('--refresh', 'Ask the service for its models, and fail if it cannot be asked')
  act(command, modelsCommand)
  const add = command
    .command('add')
    .description("Add models from a file, which override the service's")
    .argument('<file>', 'Model file, as YAML or JSON')
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
  const outcome = await models.ask()
  if (refresh && outcome.kind === 'failed') throw outcome.error
  if (refresh && outcome.kind === 'none') out.note(`The service has no list of models: ${outcome.reason}.`)
  const shown = await shownModels(ctx, models)
  const prices = await openPrices(ctx)
  if (name === undefined) await printModels(out, shown, prices)
  else await printModel(out, findModel(ctx, models, shown, name), prices)
  return EXIT.ok
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
function findModel(
  { out }: Context,
  models: KnownModels,
  shown: readonly ShownModel[],
  name: string,
): ModelDocument {
  const found = shown.find(({ document }) => document.name === name)
  if (found?.source === 'built-in')
    out.note(`${name} has no model file. These are the built-in parameters of ${found.document.kind} models.`)
  if (found !== undefined) return found.document
  const names = shown.map(({ document }) => document.name)
  throw usageError(
    models.isInvalid(name)
      ? `The model file of ${name} is not valid.`
      : `Unknown model "${shortened(name, 200)}".${didYouMean(name, names)} Use a name from \`rushes models\`.`,
    'For another published model, use `rushes run model <provider/name> --input <json>`, ' +
      'or add its model file with `rushes models add <file>`.',
  )
}

async function addCommand(ctx: Context, _flags: object, file: string): Promise<number> {
  for (const document of await readDocumentsOf(file)) {
    await addModel(ctx.configFolder, document).catch(refuseChange)
    report(ctx, document.name, 'added')
  }
  return EXIT.ok
}

const MAX_FILE_MIB = 4

/** Throws `usage` with all problems. */
async function readDocumentsOf(file: string): Promise<readonly ModelDocument[]> {
  const { problemsError, readDocuments, readOwnDocument } = await import(
    '../../service/models/read-models.js'
  )
  const { readTextFile } = await import('../../service/engines/settings.js')
  const problems: SourceProblem[] = []
  const text = readTextFile(file, MAX_FILE_MIB, (message) => problems.push({ file, message }))
  const sources = text === undefined ? [] : readDocuments(text, file, (problem) => problems.push(problem))
  const documents = sources.flatMap((source) => readOwnDocument(source) ?? [])
  if (problems.length === 0) return documents
  throw problemsError(`${shortened(file, 200)} has`, problems, '; nothing was added')
}

async function removeCommand(ctx: Context, _flags: object, name: string): Promise<number> {
  await removeModel(ctx.configFolder, name).catch((error: unknown) => {
    if (errorCode(error) !== 'ENOENT') refuseChange(error)
    throw usageError(
      `${shortened(name, 200)} is not an added model.`,
      'To list the models: `rushes models`. One of local.models is removed with its file.',
    )
  })
  report(ctx, name, 'removed')
  return EXIT.ok
}

/** Throws `usage` for a config folder that cannot be written. */
function refuseChange(error: unknown): never {
  if (!isSystemError(error)) throw error
  throw usageError(`Cannot write ${describeError(error)}.`, 'To use another folder, set RUSHES_CONFIG_DIR.')
}

function report({ out }: Context, name: string, result: 'added' | 'removed'): void {
  out.answer({ model: name, result })
  out.note(`${capitalized(result)} ${name}.`)
}

interface ShownModel {
  readonly document: ModelDocument
  readonly source: KnownModel['source'] | 'built-in'
  /** Whether `rushes run <kind>` uses it without `--model`. */
  readonly isDefault: boolean
}

const cell = (text: string, maxLength = 200): string => shortened(text, maxLength)

/** The document with its effective price. */
function pricedJson(document: ModelDocument, prices: Prices) {
  const { price = null, currency = null } = prices.find(document) ?? {}
  return { ...documentJson(document), price, currency }
}

async function printModels(out: Output, models: readonly ShownModel[], prices: Prices): Promise<void> {
  if (out.mode.json) {
    const documents = models.map(({ document, source, isDefault }) => ({
      ...pricedJson(document, prices),
      default: isDefault,
      source,
    }))
    out.json({ models: documents }, out.stdoutIsTerminal ? 2 : undefined)
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

/** Rows of parameters, and one of the price. */
async function printModel(out: Output, document: ModelDocument, prices: Prices): Promise<void> {
  if (out.mode.json) return out.json(pricedJson(document, prices), out.stdoutIsTerminal ? 2 : undefined)
  const { name: model, input } = document
  const price = prices.find(document)?.price
  const flags = flagsOf(input)
  const rows = Object.entries(input.properties).map(([name, schema]) => [
    model,
    flags.get(name) ?? `input.${name}`,
    input.required.includes(name) ? 'required' : 'optional',
    cell(valuesText(schema)),
    cell(`${schema.description}${defaultText(schema)}${flags.has(name) ? '' : ' (set with --input)'}`.trim()),
  ])
  const factors = Object.entries(price?.factors ?? {}).flatMap(([name, byValue]) =>
    Object.entries(byValue).map(([value, factor]) => `${name} ${value}: ×${factor}`),
  )
  const priceRow = [model, 'price', '', priceText(document, prices), cell(factors.join(', '))]
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
  const { price, currency } = found
  const [low = 0, high = 0] = [cheapestInput, dearestInput].map((extreme) =>
    millionthsOf({ input, price }, extreme(price, input)),
  )
  return low === high ? amountText(low, currency) : `${decimalText(low)}–${decimalText(high)} ${currency}`
}
