/**
 * `rushes models import`: writes the document of a hosted model from its published schema. A key is sent only to the API of
 * its provider.
 */
import { dirname, join, resolve } from 'node:path'
import { stringify } from 'yaml'
import { obstacleAt } from '../../download/final-files.js'
import { EXIT, messageOf, RushesError, usageError } from '../../errors.js'
import { makeFolders } from '../../host/file-system.js'
import { writeAtomically } from '../../host/files.js'
import { BodyTooLarge, readText } from '../../host/response-body.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { readModelDocument } from '../../protocol/model-document.js'
import type { Kind } from '../../protocol/models.js'
import { parseErrorBody, parseJson } from '../../protocol/parse.js'
import { problemByStatus } from '../../protocol/problems.js'
import { shortened } from '../../protocol/text.js'
import { PROVIDERS, type Provider } from '../../service/engines/hosted/providers.js'
import { readTextFile } from '../../service/engines/settings.js'
import type { Context } from '../context/context.js'
import { withValue } from '../settings/config-file.js'
import { SETTINGS } from '../settings/table.js'
import { mapInput } from './map-input.js'
import { type Json, kindOf, type ModelAddress, type Published, readPublished } from './published.js'

export interface ImportOptions {
  /** A file or URL with the schema. */
  readonly from?: string
  /** Path of the document. */
  readonly output?: string
}

export async function importCommand(ctx: Context, word: string, options: ImportOptions): Promise<number> {
  const { out } = ctx
  const address = parseAddress(word)
  const { from, output } = options
  const folder = output === undefined ? await modelsFolder(ctx) : undefined
  const path = output ?? join(folder?.path ?? '', fileNameOf(address))
  const obstacle = path === '-' ? undefined : obstacleAt(path, false)
  if (obstacle !== undefined)
    throw usageError(`${obstacle.message}.`, 'Remove it first, or name another file with -o.')
  const published =
    from === undefined ? await fetchPublished(ctx, address) : await readFrom(ctx, address, from)
  const { value, warnings } = createDocument(address, published)
  const { name, kind } = value
  checkDocument(value, name)
  for (const warning of warnings) out.warn(warning)
  out.note(
    `${name} has no cost yet: add what the provider charges for a run to the file, such as ` +
      '`cost: { run: 0.05, currency: USD }`.',
  )
  const text = stringify(value, { aliasDuplicateObjects: false, lineWidth: 120 })
  if (path === '-') {
    out.line(text.trimEnd())
    return EXIT.ok
  }
  await writeDocument(path, text)
  if (folder?.isNew) {
    const { key } = SETTINGS.localModels
    await ctx.config.update(ctx.profileName, (profile) => withValue(profile, key, folder.path))
    out.note(`Set ${key} to ${folder.path}: the models of --local.`)
  }
  out.answer({ model: name, kind, path: resolve(path) }, path)
  if (folder !== undefined) out.note(`Its flags: \`rushes run ${kind} --local --model ${name} --help\``)
  return EXIT.ok
}

const MAX_SCHEMA_MIB = 8

const isUrl = (text: string): boolean => /^https?:\/\//i.test(text) && URL.canParse(text)

async function readFrom(ctx: Context, address: ModelAddress, from: string): Promise<Published> {
  const value = isUrl(from) ? await getJson(ctx, new URL(from)) : readJsonFile(from)
  const published = readPublished(value, address)
  if (published !== undefined) return published
  throw usageError(
    `${shortened(from, 200)} has no schema of a model: it has no OpenAPI document with an input.`,
    'Use the OpenAPI document of fal or of a Cog server, or the model object of the API of Replicate or OpenRouter.',
  )
}

function readJsonFile(path: string): unknown {
  let problem = 'is not JSON'
  const text = readTextFile(path, MAX_SCHEMA_MIB, (reason) => {
    problem = reason
  })
  const json = text === undefined ? undefined : parseJson(text)
  if (json?.ok) return json.value
  throw usageError(`${shortened(path, 200)} ${problem}.`)
}

interface WrittenDocument extends Json {
  readonly name: string
  readonly kind: Kind
}

/** The document that is written for a model. */
export function createDocument(
  { provider, model, version: asked }: ModelAddress,
  { version = asked, isOfficial, ...published }: Published,
): { readonly value: WrittenDocument; readonly warnings: readonly string[] } {
  const { input, references, fixed, warnings } = mapInput(published.input, published.root)
  const isPinned = provider === 'replicate' && version !== undefined && (asked !== undefined || !isOfficial)
  const kind = kindOf(published)
  const unknownKind = `the schema does not say whether ${model} creates images or videos; for videos, set kind to video`
  return {
    warnings: kind === undefined ? [...warnings, unknownKind] : warnings,
    value: {
      name: model,
      kind: kind ?? 'image',
      engine: {
        type: provider,
        model: isPinned ? `${model}:${version}` : model,
        ...(references !== undefined && { references }),
        ...(Object.keys(fixed).length > 0 && { fixed }),
      },
      input,
    },
  }
}

/** Throws `bad_response` with a problem: the provider published the schema. */
const checkDocument = (value: Json, name: string): void =>
  void readModelDocument(value, (path, message) => {
    throw new RushesError(
      'bad_response',
      `The schema of ${name} cannot be used: ${path.join('.')} ${message}.`,
      { hint: 'Save the schema, correct it, and import it with --from.' },
    )
  })

const fileNameOf = ({ model }: ModelAddress): string =>
  `${model.replace(/[^\w.-]+/g, '-').replace(/^[.-]+/, '')}.yaml`

/** The folder of `local.models`. Without the setting, a folder beside the config file. */
async function modelsFolder(ctx: Context): Promise<{ readonly path: string; readonly isNew: boolean }> {
  const setting = await ctx.setting('localModels')
  return { path: resolve(ctx.configFolder, setting ?? 'local-models'), isNew: setting === undefined }
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

const EXAMPLES =
  'Examples: fal:fal-ai/flux/dev, replicate:black-forest-labs/flux-schnell, openrouter:google/veo-3.1.'

const ADDRESSES: readonly (readonly [ModelAddress['provider'], RegExp])[] = [
  ['fal', /^fal:([\w.-]+(?:\/[\w.-]+)+)$/],
  ['replicate', /^replicate:([\w.-]+\/[\w.-]+)(?::([\w.-]+))?$/],
  ['openrouter', /^openrouter:([\w.-]+\/[\w.-]+(?::[\w.-]+)?)$/],
]

/** Reads `fal:<endpoint>`, `replicate:<owner/name[:version]>` or `openrouter:<id>`. Throws `usage`. */
export function parseAddress(word: string): ModelAddress {
  for (const [provider, pattern] of ADDRESSES) {
    const [, model, version] = pattern.exec(word) ?? []
    if (model !== undefined) return { provider, model, version }
  }
  throw usageError(`"${shortened(word, 200)}" is not a model to import.`, EXAMPLES)
}

/** Resolves with the JSON; undefined for 404. Throws `network`, `bad_response` or `service_error`. */
async function getJson(ctx: Context, url: URL): Promise<unknown> {
  const provider = Object.values(PROVIDERS).find(
    ({ api }) => api !== undefined && new URL(api).origin === url.origin,
  )
  const key = ctx.env[provider?.keyVariable ?? '']?.trim()
  const headers = { accept: 'application/json', ...(key && { authorization: `${provider?.scheme} ${key}` }) }
  const { first: signal } = ctx.interrupts
  const send = await ctx.fetch()
  let status: number
  let text: string
  try {
    const response = await send({ method: 'GET', url, headers, signal })
    status = response.status
    text = await readText(response, MAX_SCHEMA_MIB * 1_048_576)
  } catch (error) {
    signal.throwIfAborted()
    const code = error instanceof BodyTooLarge ? 'bad_response' : 'network'
    throw new RushesError(code, `${url.origin}: ${messageOf(error)}.`, {
      hint: 'Check the network and its proxy, or give the schema with --from <file>.',
      cause: error,
    })
  }
  if (status === 404) return undefined
  const json = parseJson(text)
  if (status === 200 && json.ok) return json.value
  const reason = status === 200 ? 'the response is not JSON' : (parseErrorBody(text).message ?? '')
  const words = shortened(key ? reason.replaceAll(key, '[key]') : reason, 200)
  const { exit, hint } = problemByStatus(status)
  const message = `${url.origin} answered ${status}${words && `: ${words}`}`.replace(/\.?$/, '.')
  throw new RushesError('service_error', message, {
    httpStatus: status,
    exitCode: status < 400 ? EXIT.serviceBroken : exit,
    hint: status === 401 && provider ? `Check ${provider.keyVariable}, your key of ${provider.title}.` : hint,
  })
}

/** Asks the provider for the schema. Throws `usage` for a model that it does not have. */
async function fetchPublished(ctx: Context, address: ModelAddress): Promise<Published> {
  const { provider, model, version } = address
  const { title, api } = PROVIDERS[provider] as Provider
  const urls = {
    fal: [`https://fal.ai/api/openapi/queue/openapi.json?endpoint_id=${encodeURIComponent(model)}`],
    replicate: [`${api}/models/${model}${version === undefined ? '' : `/versions/${version}`}`],
    openrouter: [`${api}/videos/models`, `${api}/images/models`],
  }
  for (const url of urls[provider]) {
    const published = readPublished(await getJson(ctx, new URL(url)), address)
    if (published !== undefined) return published
  }
  throw usageError(
    `${title} has no schema of ${model}${version === undefined ? '' : ` in version ${version}`}. Is the name complete?`,
    EXAMPLES,
  )
}
