/** The form of a new run. */
import { createHash, randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { NewRunPage, type NewRunView, Price, type Values } from '../../console/new-run-page.js'
import { writeJson } from '../../protocol/json.js'
import { dataUrl, mediaContentType, mediaProblem } from '../../protocol/media.js'
import { mediaParameters } from '../../protocol/media-parameters.js'
import { type ModelDocument, type ModelInput, valueOfText } from '../../protocol/models.js'
import { creditsOf } from '../../protocol/price.js'
import { capitalized, shortened } from '../../protocol/text.js'
import { inputProblems, MISSING } from '../../protocol/validate.js'
import { defaultDocument, findDocument } from '../models/served-model.js'
import { Refusal } from '../rules/refusal.js'
import { fieldOf, type Site } from './site.js'

/** Chosen files as data: URLs, by parameter. A form that is drawn again has lost them. */
type Files = Readonly<Record<string, readonly string[]>>

/** A form, as it was sent. */
interface ReadForm extends Omit<NewRunView, 'assets' | 'models' | 'price'> {
  readonly files: Files
  readonly problems: Record<string, string>
}

export function addNewRunRoutes(app: FastifyInstance, site: Site): void {
  app.get<{ Querystring: { model?: string; key?: string } }>('/new', async (request, reply) => {
    const { model, key = '' } = request.query
    const formKey = /^[\w-]{1,80}$/.test(key) ? key : randomUUID()
    const form = { model: modelOf(site, model), values: {}, problems: {}, formKey }
    return site.page(reply, NewRunPage, viewOf(site, form))
  })

  /** The form of another model, with the prompt. */
  site.post(app, '/new/form', async (form, _request, reply) => {
    const { model, formKey, values } = await readForm(site, form)
    // With the key: Back to the form of this model must not bring a new one.
    const query = new URLSearchParams({ model: model.name, key: formKey })
    reply.header('hx-replace-url', site.path(`/new?${query}`))
    const { prompt = '' } = values
    const other = { model, formKey, values: { prompt }, problems: {} }
    return site.page(reply, NewRunPage, viewOf(site, other))
  })

  site.post(app, '/new/price', async (form, _request, reply) =>
    site.part(reply, Price, { price: priceOf(await readForm(site, form)) }),
  )

  site.post(app, '/runs', async (form, request, reply) => {
    const read = await readForm(site, form)
    const { problems, files } = read
    reply.code(422)
    try {
      const input = inputOf(read.model, read.values, files)
      for (const [name, problem] of problemsOf(read.model, input)) problems[name] ??= problem
      if (Object.keys(problems).length === 0)
        return site.redirect(reply, `/runs/${await createRun(site, request, read, input)}`)
    } catch (error) {
      if (!(error instanceof Refusal) || error.status === 401) throw error
      // The service names a field that only its own checks find wrong: `input.image_urls/0`.
      const [, field = ''] = /\binput\.([^\s/]+)/.exec(error.message) ?? []
      problems[field] = `Nothing was created. ${error.message}`
      if (error.status >= 500) reply.code(error.status)
    }
    for (const name of Object.keys(files)) problems[name] ??= 'Choose the files again.'
    return site.page(reply, NewRunPage, viewOf(site, read))
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
  const files: Record<string, string[]> = {}
  for (const [name, media] of mediaParameters(model.input)) {
    for (const file of form.getAll(`files.${name}`)) {
      // A field without a file sends an empty one.
      if (typeof file === 'string' || file.size === 0) continue
      const bytes = Buffer.from(await file.arrayBuffer())
      const type = mediaContentType(bytes, media)
      if (type === undefined)
        problems[name] = `${shortened(file.name, 80)} ${mediaProblem(bytes, media)}. Choose the files again.`
      else files[name] = [...(files[name] ?? []), dataUrl(bytes, type)]
    }
  }
  const names = Object.keys(model.input.properties)
  return {
    model,
    values: Object.fromEntries(names.map((name) => [name, fieldOf(form, name)])),
    formKey: fieldOf(form, 'form_key'),
    files,
    problems,
  }
}

const viewOf = (site: Site, form: Omit<ReadForm, 'files'>): Omit<NewRunView, 'assets'> => ({
  ...form,
  models: site.options.models,
  price: priceOf(form),
})

const priceOf = ({ model, values }: Pick<ReadForm, 'model' | 'values'>): number =>
  creditsOf(model, inputOf(model, values, {}))

/** The input of a run. Empty fields are not sent. */
function inputOf({ input: { properties } }: ModelDocument, values: Values, sent: Files): ModelInput {
  const input: Record<string, unknown> = {}
  for (const [name, schema] of Object.entries(properties)) {
    const { [name]: text = '' } = values
    const { [name]: files = [] } = sent
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

/** Returns the id of the run. Throws `Refusal`. */
async function createRun(
  site: Site,
  request: FastifyRequest,
  { model, formKey }: ReadForm,
  input: ModelInput,
): Promise<string> {
  const { accountId } = site.session(request).user
  const body = Buffer.from(writeJson({ model: model.name, input }))
  // The same form is the same run again, and a changed form is another one. A key of the form can have any length.
  const key = createHash('sha256').update(`${formKey}.`).update(body).digest('base64url')
  const by = site.proof(request)
  const { run } = await site.options.endpoints.createWithoutKey(accountId, [body], key, by)
  return run.id
}
