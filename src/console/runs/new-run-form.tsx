import { useEffect, useState } from 'preact/hooks'
import { CONSOLE_PATHS, type RunDetails } from '../../protocol/console.js'
import type { ModelDocument } from '../../protocol/models.js'
import { creditsOf } from '../../protocol/price.js'
import { printable } from '../../protocol/text.js'
import { ApiError, type ApiErrorParts, refreshSession, request } from '../api.js'
import { Button } from '../components/button.js'
import { focusFirstError, RadioGroup, SelectField } from '../components/field.js'
import { Icon } from '../components/icon.js'
import { Notice } from '../components/notice.js'
import { canAutofocus } from '../components/page.js'
import { showToast } from '../components/toast.js'
import { capitalized, formatNumber, plural } from '../format.js'
import { findModel, type Models, modelChoices } from '../model-documents.js'
import { useAction } from '../resource.js'
import { linkTo, navigate } from '../routes.js'
import { useSession } from '../session.js'
import { useStore } from '../store.js'
import { type CreateFailure, failureOf, isOutcomeUnknown, unknownOutcome } from './create-failure.js'
import { canResend, createBody, type DraftContent, drafts, type Form, NEW_RUN } from './drafts.js'
import {
  descriptionOf,
  type FormField,
  fieldProblems,
  fieldsOf,
  inputOf,
  ParameterField,
  SOURCES,
  type Values,
  valuesForModel,
} from './form-fields.js'
import { isTooLarge, readFiles } from './references.js'
import { ReferencesField } from './references-field.js'

export interface NewRunFormProps {
  readonly form: Form
  readonly models: Models
}

export function NewRunForm({ form, models }: NewRunFormProps) {
  const defaults = useSession().models
  const draft = useStore(drafts.store).get(form.name) ?? form.start
  const { values, references } = draft
  const model = findModel(models, draft.model) ?? findModel(models, defaults.image) ?? models[0]
  const fields = fieldsOf(model)
  const sources = references.map(({ source }) => source)
  const [problems, setProblems] = useState<Values>({})
  const create = useCreate(form, model)
  const { failure, created } = create
  useEffect(() => {
    if (canAutofocus()) document.querySelector<HTMLElement>('[name=prompt]')?.focus()
  }, [])

  const edit = (name: string, change: (content: DraftContent) => Partial<DraftContent>) => {
    setProblems(({ [name]: _, ...others }) => others)
    drafts.edit(form, change)
  }
  const select = (name: string) => {
    const next = findModel(models, name) ?? model
    setProblems({})
    drafts.edit(form, (content) => ({ model: name, values: valuesForModel(next, content.values) }))
  }
  const submit = (element: HTMLFormElement) => {
    const found = { ...fieldProblems(model, values, sources), ...unreadNumbers(element) }
    create.forget()
    setProblems(found)
    const sendsImages = fields.some(({ name }) => name === SOURCES)
    if (Object.keys(found).length > 0) focusFirstError(element)
    else if (draft.reading === 0 && !(sendsImages && isTooLarge(references))) void create.run()
  }
  const draw = (field: FormField) => {
    const { name } = field
    const shown = { field, error: problems[name] ?? failure?.fields[name] }
    if (name !== SOURCES) {
      const set = (text: string) => edit(name, (content) => ({ values: { ...content.values, [name]: text } }))
      return <ParameterField key={name} {...shown} value={values[name] ?? ''} onChange={set} />
    }
    return (
      <ReferencesField
        key={name}
        {...shown}
        references={references}
        isReading={draft.reading > 0}
        onChange={(change) => edit(name, (content) => ({ references: change(content.references) }))}
        onFiles={(files) => addFiles(form, files)}
      />
    )
  }
  return (
    <form
      class="form new-run"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        submit(event.currentTarget)
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Enter') return
        const isSubmit = event.ctrlKey || event.metaKey
        // Without this, Enter in a field or on a choice would submit the form, which costs credits.
        if (isSubmit || event.target instanceof HTMLInputElement) event.preventDefault()
        if (isSubmit && !event.repeat) submit(event.currentTarget)
      }}
    >
      <div class="new-run-columns">
        <div>{fields.filter(isContent).map(draw)}</div>
        <div>
          <ModelField models={models} selected={model} onSelect={select} />
          {fields.filter((field) => !isContent(field)).map(draw)}
        </div>
      </div>
      {failure !== undefined && <Failure failure={failure} />}
      {created !== undefined && (
        <Notice tone="good" title={CREATED.text}>
          <a href={linkTo('runs', { param: created.id })}>{CREATED.link}</a>
        </Notice>
      )}
      <Foot
        price={creditsOf(model, inputOf(model, values, sources))}
        isCreating={create.isBusy}
        isReading={draft.reading > 0}
      />
    </form>
  )
}

/** The numbers that the browser does not understand, such as `1e`, and has no value for. */
function unreadNumbers(form: HTMLFormElement): Values {
  const wrong = [...form.querySelectorAll('input')].filter(({ validity }) => validity.badInput)
  return Object.fromEntries(wrong.map(({ name }) => [name, 'This must be a number.']))
}

/** The request that creates the run, its failure, and the created run if the user has changed the form meanwhile. */
function useCreate(form: Form, model: ModelDocument) {
  const { account } = useSession()
  const draft = useStore(drafts.store).get(form.name) ?? form.start
  const [created, setCreated] = useState<RunDetails>()
  const canSendAgain = () => canResend(drafts.store.get().get(form.name) ?? form.start, Date.now())
  const failureFor = (error: unknown) =>
    failureOf(asFailure(error), { account: account.name, canResend: canSendAgain() })
  const { run, isBusy, error } = useAction(() => createRun(form, model), {
    name: `create ${form.name}`,
    onDone: (created) => {
      // Stay on the form if the user has changed it.
      if (created.isChanged) setCreated(created.run)
      else navigate(linkTo('runs', { param: created.run.id }))
    },
    onMissed: showCreatedToast,
    onMissedError: (error) => {
      const { title, text } = failureFor(error)
      showToast(`${title} ${text}`, 'bad', { text: 'Show the form', href: hrefOf(form) })
    },
  })
  const failure =
    error !== undefined
      ? failureFor(error)
      : draft.mayExist && !isBusy
        ? unknownOutcome(canSendAgain())
        : undefined
  return { run, isBusy, failure, created, forget: () => setCreated(undefined) }
}

interface FootProps {
  readonly price: number
  readonly isCreating: boolean
  readonly isReading: boolean
}

function Foot({ price, isCreating, isReading }: FootProps) {
  const { account } = useSession()
  const isShort = price > account.balance
  return (
    <footer class="new-run-foot">
      <p class="new-run-price">
        <strong>Cost {formatNumber(price)}</strong>{' '}
        <span class={isShort ? 'is-short' : 'muted'}>
          · Balance {formatNumber(account.balance)}
          {isShort && ': not enough'}
        </span>
      </p>
      <span class="new-run-keys muted" aria-hidden="true">
        <kbd>{isApple() ? '⌘' : 'Ctrl'}</kbd> <kbd>Enter</kbd>
      </span>
      <Button type="submit" kind="primary" isBusy={isCreating || isReading} disabled={account.banned}>
        {isCreating ? 'Creating' : isReading ? 'Reading images' : 'Create run'}
      </Button>
    </footer>
  )
}

/** Whether the field is in the wide column: the prompt and the images. The others are settings. */
const isContent = ({ name }: FormField): boolean => name === 'prompt' || name === SOURCES

interface ModelFieldProps {
  readonly models: Models
  readonly selected: ModelDocument
  readonly onSelect: (name: string) => void
}

/** Buttons for one model of each kind; otherwise a list. */
function ModelField({ models, selected, onSelect }: ModelFieldProps) {
  const hint = descriptionOf(selected.input) || undefined
  const field = { label: 'Model', hint, value: selected.name, onChange: onSelect }
  if (new Set(models.map(({ kind }) => kind)).size < models.length)
    return <SelectField {...field} choices={modelChoices(models)} />
  const choices = models.map(({ name, kind }) => ({
    value: name,
    label: (
      <>
        <Icon name={kind} /> {capitalized(kind)}
        <span class="model-name">{printable(name)}</span>
      </>
    ),
  }))
  return <RadioGroup {...field} choices={choices} />
}

const asFailure = (error: unknown): ApiErrorParts =>
  error instanceof ApiError ? error : { status: 0, code: 'network', message: String(error) }

async function createRun(form: Form, model: ModelDocument) {
  const created = await drafts.send(form, {
    nowMs: Date.now(),
    newKey: () => crypto.randomUUID(),
    request: (draft, idempotencyKey) =>
      request<RunDetails>('POST', CONSOLE_PATHS.runs, { body: createBody(draft, model), idempotencyKey }),
    mayExist: (error) => isOutcomeUnknown(asFailure(error).status),
    refusesInput: (error) => asFailure(error).code === 'invalid_input',
  })
  // Read the balance instead of subtracting the price: other users create runs too, and an existing run costs nothing.
  refreshSession().catch(() => undefined)
  return created
}

const CREATED = { text: 'Run created.', link: 'Show it' } as const

const showCreatedToast = ({ run }: { readonly run: RunDetails }): void =>
  showToast(CREATED.text, 'good', { text: CREATED.link, href: linkTo('runs', { param: run.id }) })

const hrefOf = ({ name }: Form): string => linkTo('new', name === NEW_RUN ? {} : { query: { from: name } })

/** Adds the valid files to the draft. Resolves to one sentence per file that cannot be sent. */
async function addFiles(form: Form, files: readonly File[]): Promise<readonly string[]> {
  let problems: readonly string[] = []
  let count = 0
  const isAdded = await drafts.addImages(form, async () => {
    const read = await readFiles(files)
    problems = read.problems
    count = read.references.length
    return read.references
  })
  if (!isAdded && count > 0)
    showToast(`${plural(count, 'image')} not added: the form was sent or cleared.`, 'bad')
  return problems
}

const isApple = (): boolean => /mac|iphone|ipad/i.test(navigator.platform)

function Failure({ failure: { title, text, mayExist } }: { readonly failure: CreateFailure }) {
  return (
    <Notice tone={mayExist ? 'warn' : 'bad'} title={title}>
      <p class="wrap">{printable(text)}</p>
      {mayExist && <a href={linkTo('runs', { query: { key: 'console' } })}>Show the runs of the console</a>}
    </Notice>
  )
}
