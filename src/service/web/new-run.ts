/** The form of a new run. */
import { createHash, randomUUID } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { MAX_COUNT, NewRunPage, type NewRunView, Price, type Values } from '../../console/new-run-page.js'
import { writeJson } from '../../protocol/json.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import { dataUrl, isSentImage, mediaContentType, mediaProblem } from '../../protocol/media.js'
import { firstPicture, mediaParameters, mediaSources } from '../../protocol/media-parameters.js'
import { listedValues, type ModelDocument, type ModelInput, valueOfText } from '../../protocol/models.js'
import { creditsOf } from '../../protocol/price.js'
import { capitalized, shortened } from '../../protocol/text.js'
import { inputProblems, MISSING } from '../../protocol/validate.js'
import { defaultDocument, findDocument } from '../models/served-model.js'
import { Refusal, refusalSaying } from '../rules/refusal.js'
import { OUTPUTS_PATH, outputOfUrl, type StoredRun } from '../store/run.js'
import { findReference } from './runs.js'
import { fieldOf, type Site } from './site.js'

/** By parameter. */
type Files = Readonly<Record<string, readonly string[]>>

/** A form, as it was sent. */
interface ReadForm extends Omit<NewRunView, 'frame' | 'models' | 'price'> {
  /** Chosen files, as data: URLs. A form that is drawn again has lost them. */
  readonly uploads: Files
  readonly problems: Record<string, string>
}

export function addNewRunRoutes(app: FastifyInstance, site: Site): void {
  const { store, baseUrl } = site.options

  interface AskedForm {
    Querystring: { from?: string; model?: string; key?: string; reference?: string | readonly string[] }
  }
  app.get<AskedForm>('/new', async (request, reply) => {
    const { from = '', model: name, key = '', reference = [] } = request.query
    const run = from === '' ? undefined : await store.findRun(from, site.account(request))
    const model = modelOf(site, run?.model ?? name)
    const { files, values } = run ? fieldsOfRun(run, model, baseUrl(request)) : { files: {}, values: {} }
    const picture = firstPicture(model.input) ?? ''
    const references = {
      ...files,
      [picture]: [...(files[picture] ?? []), ...[reference].flat()].filter(isOwnPath),
    }
    const formKey = /^[\w-]{1,80}$/.test(key) ? key : randomUUID()
    const form = { model, values, references, problems: {}, count: 1, formKey }
    return site.page(reply, NewRunPage, await viewOf(site, request, form))
  })

  /** The same form for another model. */
  site.post(app, '/new/form', async (form, request, reply) => {
    const read = await readForm(site, form)
    const { model, formKey, references } = read
    // With the key: Back to the form of this model must not bring a new one.
    const query = new URLSearchParams({ model: model.name, key: formKey })
    for (const each of references[firstPicture(model.input) ?? ''] ?? []) query.append('reference', each)
    reply.header('hx-replace-url', site.path(`/new?${query}`))
    const values = possibleValues(read)
    return site.page(reply, NewRunPage, await viewOf(site, request, { ...read, values, problems: {} }))
  })

  site.post(app, '/new/price', async (form, request, reply) => {
    const view = await viewOf(site, request, await readForm(site, form))
    return site.part(reply, Price, { ...view, balance: view.frame.balance })
  })

  site.post(app, '/runs', async (form, request, reply) => {
    const read = await readForm(site, form)
    const { problems, uploads, count } = read
    const ids: string[] = []
    reply.code(422)
    try {
      const input = inputOf(read.model, read.values, await sourcesOf(site, request, read))
      for (const [name, problem] of problemsOf(read.model, input)) problems[name] ??= problem
      if (Object.keys(problems).length === 0) {
        await createRuns(site, request, read, input, ids)
        return site.redirect(reply, ids.length === 1 ? `/runs/${ids[0]}` : '/runs')
      }
    } catch (error) {
      if (!(error instanceof Refusal) || error.status === 401) throw error
      const made = ids.length > 0 ? `${ids.length} of ${count} runs were created.` : 'Nothing was created.'
      problems[''] = `${made} ${error.message}`
      if (error.status >= 500) reply.code(error.status)
    }
    for (const [name, files] of Object.entries(uploads))
      if (files.length > 0) problems[name] ??= 'Choose the files again.'
    return site.page(reply, NewRunPage, await viewOf(site, request, read))
  })
}

/** The default model if there is none with this name. */
function modelOf({ options: { models } }: Site, name: unknown): ModelDocument {
  const model = findDocument(models, String(name)) ?? defaultDocument(models, 'image') ?? models[0]
  if (model === undefined) throw new Refusal('model_not_found')
  return model
}

async function readForm(site: Site, form: FormData): Promise<ReadForm> {
  const model = modelOf(site, fieldOf(form, 'model'))
  const problems: Record<string, string> = {}
  const references: Record<string, readonly string[]> = {}
  const uploads: Record<string, string[]> = {}
  for (const [name, media] of mediaParameters(model.input)) {
    references[name] = form.getAll(`reference.${name}`).map(String).filter(isOwnPath)
    const sent: string[] = []
    for (const file of form.getAll(`files.${name}`)) {
      // A field without a file sends an empty one.
      if (typeof file === 'string' || file.size === 0) continue
      const bytes = Buffer.from(await file.arrayBuffer())
      const type = mediaContentType(bytes, media)
      if (type === undefined) problems[name] = `${shortened(file.name, 80)} ${mediaProblem(bytes, media)}.`
      else sent.push(dataUrl(bytes, type))
    }
    uploads[name] = sent
  }
  const count = Number(fieldOf(form, 'count') || 1)
  const isCount = Number.isInteger(count) && count >= 1 && count <= MAX_COUNT
  if (!isCount) problems[''] = `The number of runs must be from 1 to ${MAX_COUNT}.`
  const names = Object.keys(model.input.properties)
  return {
    model,
    values: Object.fromEntries(names.map((name) => [name, fieldOf(form, name)])),
    count: isCount ? count : 1,
    formKey: fieldOf(form, 'form_key'),
    references,
    uploads,
    problems,
  }
}

const isOwnPath = (value: string): boolean => /^\/(outputs|runs)\/[\w.%/-]+$/.test(value)

const viewOf = async (
  site: Site,
  request: FastifyRequest,
  form: Omit<ReadForm, 'uploads'>,
): Promise<NewRunView> => ({
  ...form,
  frame: await site.frame(request),
  models: site.options.models,
  price: creditsOf(form.model, inputOf(form.model, form.values, {})),
})

/** The values without choices of another model that this one does not have. */
const possibleValues = ({ values, model }: ReadForm): Values =>
  Object.fromEntries(
    Object.entries(values).filter(([name, text]) => {
      const { [name]: schema } = model.input.properties
      return (schema && listedValues(schema))?.includes(text) ?? true
    }),
  )

/** The fields of a form that creates a run again. Files of the service are references. */
function fieldsOfRun(run: StoredRun, { input: schema }: ModelDocument, baseUrl: string) {
  const media = mediaParameters(schema)
  const files: Record<string, string[]> = {}
  const urls: Record<string, string[]> = {}
  for (const [position, { parameter, value }] of mediaSources(run.input, media.keys()).entries()) {
    const url = String(value)
    const isOutput = url.startsWith(`${baseUrl}${OUTPUTS_PATH}/`) && outputOfUrl(url) !== undefined
    const path = isOutput ? url.slice(baseUrl.length) : `/runs/${run.id}/references/${position}`
    const list = isOutput || isSentImage(value) ? files : urls
    list[parameter] = [...(list[parameter] ?? []), list === files ? path : url]
  }
  const others = Object.entries(run.input).filter(([name]) => !media.has(name))
  const values = Object.fromEntries(
    [...others, ...Object.entries(urls)].map(([name, value]) => [name, fieldValue(value)]),
  )
  return { files, values }
}

const fieldValue = (value: unknown): string => {
  if (Array.isArray(value)) return value.join('\n')
  return typeof value === 'object' ? writeJson(value) : String(value)
}

/**
 * The files and URLs of each parameter, as the service is sent them. Throws `Refusal`: 404 or 410 for a file that is gone, 413 for
 * files that together are larger than a form could be.
 */
async function sourcesOf(
  site: Site,
  request: FastifyRequest,
  { references, uploads }: ReadForm,
): Promise<Files> {
  const sources: Record<string, string[]> = {}
  const { bodyLimit = MAX_BODY_BYTES } = request.routeOptions
  let left = (4 / 3) * bodyLimit
  for (const [name, paths] of Object.entries(references)) {
    const found: string[] = []
    for (const path of paths) {
      const source = await sourceOf(site, request, path, left)
      left -= source.length
      found.push(source)
    }
    sources[name] = [...found, ...(uploads[name] ?? [])]
  }
  return sources
}

async function sourceOf(
  site: Site,
  request: FastifyRequest,
  path: string,
  maxLength: number,
): Promise<string> {
  const { files, baseUrl } = site.options
  if (path.startsWith(`${OUTPUTS_PATH}/`)) return `${baseUrl(request)}${path}`
  const [, id = '', position] = /^\/runs\/([^/]+)\/references\/(\d+)$/.exec(path) ?? []
  const account = site.account(request)
  const { key, contentType, bytes } = await findReference(site, account, id, Number(position))
  // A form of a few bytes can name many large files, each of them many times.
  if (bytes * (4 / 3) > maxLength)
    throw refusalSaying(
      'payload_too_large',
      'The references are too large together. Use fewer or smaller ones.',
    )
  const file = await files.find(key)
  if (file === undefined) throw new Refusal('gone')
  return dataUrl(await buffer(await file.read()), contentType)
}

/** The input of a run. Empty fields are not sent. */
function inputOf({ input: { properties } }: ModelDocument, values: Values, sources: Files): ModelInput {
  const input: Record<string, unknown> = {}
  for (const [name, schema] of Object.entries(properties)) {
    const { [name]: text = '' } = values
    const { [name]: files = [] } = sources
    if (schema.type === 'array') {
      const all = [...files, ...text.split('\n').flatMap((line) => line.trim() || [])]
      if (all.length > 0) input[name] = all
    } else if (files[0] !== undefined) input[name] = files[0]
    else if (text.trim() !== '' && schema.type !== 'other') input[name] = valueOfText(schema, text)
  }
  return input
}

const problemsOf = ({ input: schema }: ModelDocument, input: ModelInput) =>
  inputProblems(schema, input).map(
    ({ parameter, message }) =>
      [
        parameter.replace(/\/.*/, ''),
        message === MISSING ? 'Required.' : `${capitalized(message)}.`,
      ] as const,
  )

/** Creates the runs one after another, and adds the id of each to `ids`. Throws `Refusal`. */
async function createRuns(
  site: Site,
  request: FastifyRequest,
  { model, formKey, count }: ReadForm,
  input: ModelInput,
  ids: string[],
): Promise<void> {
  const { accountId } = site.session(request).user
  const body = Buffer.from(writeJson({ model: model.name, input }))
  // The same form creates the same runs again, and a changed form creates others. A key of the form can have any length.
  const key = `${createHash('sha256').update(`${formKey}.`).update(body).digest('base64url')}.${count}`
  for (let number = 1; number <= count; number++) {
    const by = site.proof(request)
    const { run } = await site.options.endpoints.createWithoutKey(accountId, [body], `${key}.${number}`, by)
    ids.push(run.id)
  }
}
