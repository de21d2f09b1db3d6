/** The form of a new run. */
import { createHash, randomUUID } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  MAX_COUNT,
  mediaFields,
  NewRunPage,
  type NewRunView,
  Price,
  type Reference,
  type Values,
} from '../../console/index.js'
import { writeJson } from '../../protocol/json.js'
import { dataUrl, mediaContentType, mediaProblem } from '../../protocol/media.js'
import { firstPicture, mediaParameters, mediaSources } from '../../protocol/media-parameters.js'
import type { ModelDocument, ModelInput } from '../../protocol/models.js'
import { isSentImage, listedValues, valueOfText } from '../../protocol/parameters.js'
import { creditsOf, defaultsOf } from '../../protocol/price.js'
import { percentDecoded, shortened } from '../../protocol/text.js'
import { inputProblems } from '../../protocol/validate.js'
import { logCreate } from '../http/api-routes.js'
import { defaultDocument, findDocument } from '../models/served-model.js'
import { Refusal } from '../rules/refusal.js'
import { OUTPUTS_PATH, outputOfUrl } from '../store/run.js'
import { findReference } from './runs.js'
import { fieldOf, type Site } from './site.js'

/** By parameter: paths of files that the service has, or data: URLs. */
type Files = Readonly<Record<string, readonly string[]>>

/** A form, as it was sent. */
interface ReadForm {
  readonly model: ModelDocument
  readonly values: Values
  readonly count: number
  readonly formKey: string
  /** Outputs and files of earlier runs. */
  readonly references: Files
  /** Chosen files, as data: URLs. A form that is drawn again has lost them. */
  readonly uploads: Files
  /** By parameter; '' for the whole form. */
  readonly problems: Readonly<Record<string, string>>
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
    const fields = mediaFields(model, name)
    references[name] = [...new Set(form.getAll(fields.reference).map(String).filter(isOwnPath))]
    const sent: string[] = []
    for (const file of form.getAll(fields.files)) {
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

async function viewOf(
  site: Site,
  request: FastifyRequest,
  { references, ...form }: Omit<ReadForm, 'uploads'>,
): Promise<NewRunView> {
  const shown = (value: string): Reference => ({
    value,
    url: value,
    name: percentDecoded(value.split('/').at(-1) ?? ''),
  })
  return {
    ...form,
    frame: await site.frame(request),
    models: site.options.models,
    references: mapValues(references, (values) => values.map(shown)),
    price: creditsOf(form.model, inputOf(form.model, form.values, {})),
  }
}

/** Returns what the service is sent for a file that it has. Throws `Refusal` (404) if it is gone. */
async function sourceOf(site: Site, request: FastifyRequest, path: string): Promise<string> {
  const { storage, baseUrl } = site.options
  if (path.startsWith(`${OUTPUTS_PATH}/`)) return `${baseUrl(request)}${path}`
  const [, id = '', position] = /^\/runs\/([^/]+)\/references\/(\d+)$/.exec(path) ?? []
  const { key, contentType } = await findReference(site, site.account(request), id, Number(position))
  const file = await storage.files.find(key)
  if (file === undefined) throw new Refusal('gone')
  return dataUrl(await buffer(await file.read()), contentType)
}

/** Returns the ids of the runs, or the form with its problems. */
async function submit(
  site: Site,
  read: ReadForm,
  request: FastifyRequest,
): Promise<{ ids: readonly string[] } | { refused: ReadForm; status: number }> {
  const { model, references, uploads, count } = read
  const refuse = (found: ReadForm['problems'], status = 422) => {
    const lost = Object.keys(uploads).filter((name) => uploads[name]?.length)
    const problems = {
      ...Object.fromEntries(lost.map((name) => [name, 'Choose the files again.'])),
      ...found,
    }
    return { refused: { ...read, problems }, status }
  }
  const { endpoints } = site.options
  const { id: user, accountId } = site.session(request).user
  const ids: string[] = []
  try {
    const sources: Record<string, readonly string[]> = {}
    for (const [name, paths] of Object.entries(references)) {
      const found: string[] = []
      for (const path of paths) found.push(await sourceOf(site, request, path))
      sources[name] = [...found, ...(uploads[name] ?? [])]
    }
    const input = inputOf(model, read.values, sources)
    const problems = { ...problemsOf(model, input), ...read.problems }
    if (Object.keys(problems).length > 0) return refuse(problems)
    const body = Buffer.from(writeJson({ model: model.name, input }))
    // The same form is the same runs, a changed one is others.
    const key = `${read.formKey}.${createHash('sha256').update(body).digest('base64url')}.${count}`
    for (let number = 1; number <= count; number++) {
      const by = site.proof(request)
      const created = await endpoints.createWithoutKey(accountId, [body], `${key}.${number}`, by)
      logCreate(request.log, created, { account: accountId, user })
      ids.push(created.run.id)
    }
    return { ids }
  } catch (error) {
    if (!(error instanceof Refusal) || error.status === 401) throw error
    const made = ids.length > 0 ? `${ids.length} of ${count} runs were created. ` : ''
    return refuse({ '': `${made}${error.message}` }, error.status >= 500 ? error.status : 422)
  }
}

export function addNewRunRoutes(app: FastifyInstance, site: Site): void {
  const { store, baseUrl } = site.options

  interface AskedForm {
    Querystring: { from?: string; model?: string; key?: string; reference?: string | readonly string[] }
  }
  app.get<AskedForm>('/new', async (request, reply) => {
    const { from = '', model, key = '', reference = [] } = request.query
    const run = from === '' ? undefined : await store.findRun(from, site.account(request))
    const chosen = modelOf(site, run?.model ?? model)
    const { files, input } = filesOf(run?.input ?? {}, chosen, from, baseUrl(request))
    const picture = firstPicture(chosen.input)
    const view = await viewOf(site, request, {
      model: chosen,
      values: textsOf(input),
      references:
        picture === undefined
          ? files
          : { ...files, [picture]: [...(files[picture] ?? []), ...[reference].flat()].filter(isOwnPath) },
      problems: {},
      count: 1,
      formKey: /^[\w-]{1,80}$/.test(key) ? key : randomUUID(),
    })
    return site.page(reply, NewRunPage, view)
  })

  /** The same form for another model. */
  site.post(app, '/new/form', async (form, request, reply) => {
    const read = await readForm(site, form)
    // With the key: Back to the form of this model must not bring a new one.
    const fields = [
      ['model', read.model.name],
      ['key', read.formKey],
      ...(read.references[firstPicture(read.model.input) ?? ''] ?? []).map((each) => ['reference', each]),
    ]
    reply.header('hx-replace-url', site.path(`/new?${new URLSearchParams(fields)}`))
    const values = keptValues(read, modelOf(site, fieldOf(form, 'shown_model')))
    return site.page(reply, NewRunPage, await viewOf(site, request, { ...read, values, problems: {} }))
  })

  site.post(app, '/new/price', async (form, request, reply) => {
    const view = await viewOf(site, request, await readForm(site, form))
    return site.part(reply, Price, { ...view, balance: view.frame.balance })
  })

  site.post(app, '/runs', async (form, request, reply) => {
    const sent = await submit(site, await readForm(site, form), request)
    if ('refused' in sent)
      return site.page(reply, NewRunPage, await viewOf(site, request, sent.refused), sent.status)
    return site.redirect(reply, sent.ids.length === 1 ? `/runs/${sent.ids[0]}` : '/runs')
  })
}

/** The texts that stay for another model: no default of the model before, and no choice that this one does not have. */
function keptValues({ values, model }: ReadForm, before: ModelDocument): Values {
  const defaults = defaultsOf(before.input)
  return Object.fromEntries(
    Object.entries(values).filter(([name, text]) => {
      const { [name]: schema } = model.input.properties
      const choices = schema && listedValues(schema)
      return text !== String(defaults[name]) && (choices === undefined || choices.includes(text))
    }),
  )
}

const problemsOf = ({ input: schema }: ModelDocument, input: ModelInput): ReadForm['problems'] =>
  Object.fromEntries(
    inputProblems(schema, input).map(({ parameter, message }) => [
      parameter.replace(/\/.*/, ''),
      `${message.charAt(0).toUpperCase()}${message.slice(1)}.`,
    ]),
  )

const isOwnPath = (value: string): boolean => /^\/(outputs|runs)\/[\w.%/-]+$/.test(value)

/** The files of an earlier run that this service has, by parameter, and its input without them. */
function filesOf(
  input: ModelInput,
  { input: schema }: ModelDocument,
  id: string,
  baseUrl: string,
): { readonly files: Files; readonly input: ModelInput } {
  const files: Record<string, string[]> = {}
  const texts: Record<string, unknown> = { ...input }
  for (const [position, { parameter, value }] of mediaSources(
    input,
    mediaParameters(schema).keys(),
  ).entries()) {
    const own = files[parameter] ?? []
    if (own.length === 0) texts[parameter] = []
    files[parameter] = own
    const url = String(value)
    const isOutput = url.startsWith(`${baseUrl}${OUTPUTS_PATH}/`) && outputOfUrl(url) !== undefined
    if (isSentImage(value)) own.push(`/runs/${id}/references/${position}`)
    else if (isOutput) own.push(url.slice(baseUrl.length))
    else texts[parameter] = [...(texts[parameter] as readonly string[]), url]
  }
  return { files, input: texts }
}

const mapValues = <From, To>(
  record: Readonly<Record<string, From>>,
  change: (value: From) => To,
): Readonly<Record<string, To>> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]))

const textsOf = (input: ModelInput): Values =>
  Object.fromEntries(
    Object.entries(input).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join('\n') : typeof value === 'object' ? writeJson(value) : String(value),
    ]),
  )

/** The input of a run. Empty fields are not sent. `sources`: those of files, by parameter. */
function inputOf(
  { input: { properties } }: ModelDocument,
  values: Values,
  sources: Readonly<Record<string, readonly string[]>>,
): ModelInput {
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, schema]): readonly (readonly [string, unknown])[] => {
      const text = values[name] ?? ''
      const files = sources[name] ?? []
      if (schema.type === 'array') {
        const all = [...files, ...text.split('\n').flatMap((line) => line.trim() || [])]
        return all.length > 0 ? [[name, all]] : []
      }
      if (files[0] !== undefined) return [[name, files[0]]]
      return text.trim() === '' || schema.type === 'other' ? [] : [[name, valueOfText(schema, text)]]
    }),
  )
}
