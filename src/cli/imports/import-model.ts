/** `rushes models import`: writes the document of a hosted model from its published schema. */
import { statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { EXIT, usageError } from '../../errors.js'
import { makeFolders } from '../../host/directories.js'
import { writeAtomically } from '../../host/files.js'
import { quoteWord } from '../../host/shell.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { readJson } from '../../protocol/json.js'
import { IMAGE_URLS } from '../../protocol/media-parameters.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { printable, shortened } from '../../protocol/text.js'
import { PROVIDERS, type Provider } from '../../service/engines/hosted/providers.js'
import { readTextFile } from '../../service/engines/settings.js'
import type { Context } from '../context/context.js'
import { flagOf } from '../flags/model-flags.js'
import { withValue } from '../settings/config-file.js'
import { SETTINGS } from '../settings/table.js'
import { checkText, createDocument, documentText, type ImportedDocument } from './import-document.js'
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
}

export async function importCommand(ctx: Context, word: string, options: ImportOptions): Promise<number> {
  const address = parseAddress(word)
  const folder = options.output === undefined ? await modelsFolder(ctx) : undefined
  const path = options.output ?? join(folder?.path ?? '', fileNameOf(address))
  const isReplaced = path !== '-' && isFile(path)
  if (isReplaced && !options.overwrite)
    throw usageError(`${path} already exists.`, 'To replace it, add --overwrite.')
  const { value, warnings, text } = await importDocument(ctx, address, options)
  checkText(text, address.model)
  for (const warning of warnings) ctx.out.warn(warning)
  if (value.cost === undefined)
    ctx.out.note(
      `${address.model} is without a price: for estimates and --max-cost, add its \`cost\` to the file.`,
    )
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
  if (ctx.out.mode.json)
    ctx.out.json({
      ...{ model: value.name, kind: value.kind, path: resolve(path) },
      result: isReplaced ? 'replaced' : 'imported',
    })
  else {
    ctx.out.line(printable(path))
    printNext(ctx, value, path, folder !== undefined)
  }
  return EXIT.ok
}

async function importDocument(
  ctx: Context,
  address: ModelAddress,
  { from, output, overwrite, kind: asked }: ImportOptions,
): Promise<ImportedDocument & { readonly text: string }> {
  const published =
    from === undefined ? await fetchPublished(ctx, address) : await readFrom(ctx, address, from)
  const kind = asked ?? kindOf(published)
  if (kind === 'other')
    throw usageError(`${address.model} creates neither images nor videos, so rushes cannot run it.`)
  if (kind === undefined) {
    const words = ['rushes models import', addressText(address)]
    if (from !== undefined) words.push('--from', quoteWord(from))
    if (output !== undefined) words.push('-o', quoteWord(output))
    if (overwrite === true) words.push('--overwrite')
    const commands = KINDS.map((each) => `For ${each}s: \`${[...words, '--kind', each].join(' ')}\`.`)
    throw usageError(
      `The schema of ${address.model} does not say what the model creates.`,
      commands.join('\n'),
    )
  }
  const document = createDocument({ address, published, kind })
  const { title } = PROVIDERS[address.provider] as Provider
  const source = from === undefined ? title : isUrl(from) ? from : resolve(from)
  const version = published.version === undefined ? '' : `, version ${published.version}`
  const text = documentText(document.value, [
    `${addressText(address)}${version}, imported from ${source} on ${new Date(ctx.clock.now()).toISOString().slice(0, 10)}.`,
    published.cost === undefined
      ? 'For estimates and --max-cost, add what the provider charges for a run: cost: { run: 0.05, currency: USD }'
      : 'The cost is what the provider lists: it may charge another amount.',
  ])
  return { ...document, text }
}

const MAX_SCHEMA_MIB = 8

const isUrl = (text: string): boolean => /^https?:\/\//i.test(text) && URL.canParse(text)

async function readFrom(ctx: Context, address: ModelAddress, from: string): Promise<Published> {
  const value = isUrl(from) ? await getJson(ctx, new URL(from)) : readJsonFile(from)
  const published = readPublished(value, address)
  if (published !== undefined) return published
  throw usageError(
    `${shortened(printable(from), 200)} has no schema of a model: it has no OpenAPI document with an input.`,
    'Use the OpenAPI document of fal or of a Cog server, or the model object of the API of Replicate or OpenRouter.',
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
      'Name the model file with -o, for example -o model.yaml.',
    )
  return { path, isNew: false }
}

async function writeDocument(path: string, text: string): Promise<void> {
  try {
    makeFolders(dirname(resolve(path)), 0o700)
    await writeAtomically(path, text)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usageError(`Cannot write ${describeError(error, path)}.`)
  }
}

function printNext({ out, env }: Context, value: Json, path: string, isLocal: boolean): void {
  const provider = PROVIDERS[String(isObject(value.engine) ? value.engine.type : '')]
  if (provider !== undefined && keyOf(env, provider) === undefined)
    out.note(`To run it, set ${provider.keyVariable} to your key of ${provider.title}.`)
  const { properties, required } = isObject(value.input) ? value.input : {}
  const prompt = isObject(properties) && 'prompt' in properties ? ' "a red fox"' : ''
  const others = (Array.isArray(required) ? required : [])
    .filter((name) => name !== 'prompt')
    .map((name) => (name === IMAGE_URLS ? ' -i picture.png' : ` ${flagOf(String(name))} <value>`))
  const words = `rushes run ${value.kind} --local --model ${value.name}${prompt}${others.join('')}`
  out.note(isLocal ? `Then: \`${words}\`` : `To use it: \`rushes serve --models ${quoteWord(path)}\``)
}
