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
import type { Clock } from '../../host/clock.js'
import { writeJson } from '../../protocol/json.js'
import { dataUrl, mediaContentType, mediaProblem } from '../../protocol/media.js'
import { firstPicture, mediaParameters, mediaSources } from '../../protocol/media-parameters.js'
import type { ModelDocument, ModelInput } from '../../protocol/models.js'
import { isSentImage, listedValues, valueOfText } from '../../protocol/parameters.js'
import { creditsOf, defaultsOf } from '../../protocol/price.js'
import { shortened } from '../../protocol/text.js'
import { inputProblems } from '../../protocol/validate.js'
import { logCreate } from '../http/api-routes.js'
import { defaultDocument, findDocument } from '../models/served-model.js'
import { Refusal } from '../rules/refusal.js'
import { OUTPUTS_PATH, outputOfUrl } from '../store/run.js'
import { findReference } from './runs.js'
import { type ById, fieldOf, type Site } from './site.js'

const KEPT_MS = 3_600_000
const MAX_KEPT_BYTES = 128 * 1_048_576

interface KeptFile {
  readonly userId: number
  readonly name: string
  readonly type: string
  readonly bytes: Buffer
  readonly untilMs: number
}

/**
 * Files of forms that were drawn again, for an hour, in memory: a browser does not fill a file field again. When they are too
 * many, the oldest are dropped, and their users choose them again.
 */
class KeptFiles {
  readonly #files = new Map<string, KeptFile>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  keep(userId: number, name: string, type: string, bytes: Buffer): string {
    const id = randomUUID()
    this.#files.set(id, { userId, name, type, bytes, untilMs: this.#clock.now() + KEPT_MS })
    let total = [...this.#files.values()].reduce((sum, file) => sum + file.bytes.length, 0)
    for (const [each, { bytes, untilMs }] of this.#files) {
      if (untilMs > this.#clock.now() && total <= MAX_KEPT_BYTES) break
      this.#files.delete(each)
      total -= bytes.length
    }
    return id
  }

  find(userId: number, id: string): KeptFile | undefined {
    const file = this.#files.get(id)
    return file?.userId === userId && file.untilMs > this.#clock.now() ? file : undefined
  }
}

const KEPT = '/new/files/'

/** By parameter: names of files. */
type Files = Readonly<Record<string, readonly string[]>>

/** A form, as it was sent. */
interface ReadForm {
  readonly model: ModelDocument
  readonly values: Values
  readonly count: number
  readonly formKey: string
  /** By parameter: the files that the form has from before, and the new ones. */
  readonly references: Files
  readonly problems: Readonly<Record<string, string>>
}

/** Reads the form, draws it again, and creates its runs. */
class NewRunForms {
  readonly files: KeptFiles
  readonly #site: Site

  constructor(site: Site) {
    this.#site = site
    this.files = new KeptFiles(site.options.clock)
  }

  /** The default model if there is none with this name. */
  model(name: unknown): ModelDocument {
    const { models } = this.#site.options
    const model = findDocument(models, String(name)) ?? defaultDocument(models, 'image') ?? models[0]
    if (model === undefined) throw new Refusal('model_not_found')
    return model
  }

  async view(request: FastifyRequest, { references, ...form }: ReadForm): Promise<NewRunView> {
    const { id: userId } = this.#site.session(request).user
    return {
      ...form,
      frame: await this.#site.frame(request),
      models: this.#site.options.models,
      references: mapValues(references, (values) =>
        values.map((value) => referenceOf(this.files, userId, value)),
      ),
      price: creditsOf(form.model, inputOf(form.model, form.values, {})),
    }
  }

  async read(form: FormData, request: FastifyRequest): Promise<ReadForm> {
    const { id: userId } = this.#site.session(request).user
    const model = this.model(fieldOf(form, 'model'))
    const problems: Record<string, string> = {}
    const references: Record<string, readonly string[]> = {}
    for (const [name, media] of mediaParameters(model.input)) {
      const fields = mediaFields(model, name)
      const found = form.getAll(fields.reference).map(String).filter(isOwnPath)
      for (const file of form.getAll(fields.files)) {
        // A field without a file sends an empty one.
        if (typeof file === 'string' || file.size === 0) continue
        const bytes = Buffer.from(await file.arrayBuffer())
        const type = mediaContentType(bytes, media)
        if (type === undefined) problems[name] = `${shortened(file.name, 80)} ${mediaProblem(bytes, media)}.`
        else found.push(`${KEPT}${this.files.keep(userId, file.name, type, bytes)}`)
      }
      references[name] = [...new Set(found)]
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
      problems,
    }
  }

  /** Returns what the service is sent for a file. Throws `Refusal` (404) if it is gone. */
  async #sourceOf(value: string, request: FastifyRequest): Promise<string> {
    const { accountId, id: userId } = this.#site.session(request).user
    const { storage, baseUrl } = this.#site.options
    if (value.startsWith(`${OUTPUTS_PATH}/`)) return `${baseUrl(request)}${value}`
    const kept = this.files.find(userId, value.slice(KEPT.length))
    if (value.startsWith(KEPT) && kept !== undefined) return dataUrl(kept.bytes, kept.type)
    const [, id = '', position] = /^\/runs\/([^/]+)\/references\/(\d+)$/.exec(value) ?? []
    const { key, contentType } = await findReference(this.#site, accountId, id, Number(position))
    const file = await storage.files.find(key)
    if (file === undefined) throw new Refusal('not_found')
    return dataUrl(await buffer(await file.read()), contentType)
  }

  /** Returns the ids of the runs, or the form with its problems. */
  async submit(
    read: ReadForm,
    request: FastifyRequest,
  ): Promise<{ ids: readonly string[] } | { refused: ReadForm; status: number }> {
    const sources: Record<string, readonly string[]> = {}
    const kept: Record<string, readonly string[]> = {}
    const lost: Record<string, string> = {}
    for (const [name, values] of Object.entries(read.references)) {
      const found: [value: string, source: string][] = []
      for (const each of values)
        try {
          found.push([each, await this.#sourceOf(each, request)])
        } catch (error) {
          if (!(error instanceof Refusal)) throw error
          lost[name] = 'A file is no longer kept here. Choose it again.'
        }
      kept[name] = found.map(([value]) => value)
      sources[name] = found.map(([, source]) => source)
    }
    const input = inputOf(read.model, read.values, sources)
    const problems = { ...problemsOf(read.model, input), ...lost, ...read.problems }
    const refuse = (found: ReadForm['problems'], status = 422) => ({
      refused: { ...read, references: kept, problems: found },
      status,
    })
    if (Object.keys(problems).length > 0) return refuse(problems)
    const body = Buffer.from(writeJson({ model: read.model.name, input }))
    // The same form is the same runs, a changed one is others.
    const key = `${read.formKey}.${createHash('sha256').update(body).digest('base64url')}.${read.count}`
    const ids: string[] = []
    try {
      for (let number = 1; number <= read.count; number++)
        ids.push(await this.#create(request, body, `${key}.${number}`))
      return { ids }
    } catch (error) {
      if (!(error instanceof Refusal) || error.status === 401) throw error
      const made = ids.length > 0 ? `${ids.length} of ${read.count} runs were created. ` : ''
      return refuse({ '': `${made}${error.message}` }, error.status >= 500 ? error.status : 422)
    }
  }

  async #create(request: FastifyRequest, body: Uint8Array, key: string): Promise<string> {
    const { endpoints, logPrompts } = this.#site.options
    const { id: user, accountId } = this.#site.session(request).user
    // A body may be moved to a thread, so each run has its own.
    const copy = [Uint8Array.from(body)]
    const created = await endpoints.createWithoutKey(accountId, copy, key, this.#site.proof(request))
    logCreate(request.log, created, { account: accountId, user }, logPrompts)
    return created.run.id
  }
}

export function addNewRunRoutes(app: FastifyInstance, site: Site): void {
  const { store, baseUrl } = site.options
  const forms = new NewRunForms(site)

  interface AskedForm {
    Querystring: { from?: string; model?: string; key?: string; reference?: string | readonly string[] }
  }
  app.get<AskedForm>('/new', async (request, reply) => {
    const { from = '', model, key = '', reference = [] } = request.query
    const run = from === '' ? undefined : await store.findRun(from, site.account(request))
    const chosen = forms.model(run?.model ?? model)
    const { files, input } = filesOf(run?.input ?? {}, chosen, from, baseUrl(request))
    const picture = firstPicture(chosen.input)
    const view = await forms.view(request, {
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

  app.get<ById>(`${KEPT}:id`, async (request, reply) => {
    const file = forms.files.find(site.session(request).user.id, request.params.id)
    if (file === undefined) throw new Refusal('not_found')
    return reply.header('cache-control', 'private, max-age=3600').type(file.type).send(file.bytes)
  })

  /** The same form for another model. */
  site.post(app, '/new/form', async (form, request, reply) => {
    const read = await forms.read(form, request)
    // With the key: Back to the form of this model must not bring a new one.
    const fields = [
      ['model', read.model.name],
      ['key', read.formKey],
      ...(read.references[firstPicture(read.model.input) ?? ''] ?? []).map((each) => ['reference', each]),
    ]
    reply.header('hx-replace-url', site.path(`/new?${new URLSearchParams(fields)}`))
    const values = keptValues(read, forms.model(fieldOf(form, 'shown_model')))
    return site.page(reply, NewRunPage, await forms.view(request, { ...read, values, problems: {} }))
  })

  site.post(app, '/new/price', async (form, request, reply) => {
    const view = await forms.view(request, await forms.read(form, request))
    return site.part(reply, Price, { ...view, balance: view.frame.balance })
  })

  site.post(app, '/runs', async (form, request, reply) => {
    const sent = await forms.submit(await forms.read(form, request), request)
    if ('refused' in sent)
      return site.page(reply, NewRunPage, await forms.view(request, sent.refused), sent.status)
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

const isOwnPath = (value: string): boolean => /^\/(new\/files|outputs|runs)\/[\w.%/-]+$/.test(value)

function referenceOf(files: KeptFiles, userId: number, value: string): Reference {
  const kept = value.startsWith(KEPT) ? files.find(userId, value.slice(KEPT.length)) : undefined
  return { value, url: value, name: kept?.name ?? decodeURIComponent(value.split('/').at(-1) ?? '') }
}

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
