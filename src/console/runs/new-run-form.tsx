import { useEffect, useRef, useState } from 'preact/hooks'
import { CONSOLE_PATHS, type RunDetails } from '../../protocol/console.js'
import { priceOf } from '../../protocol/limits.js'
import { KINDS } from '../../protocol/models.js'
import { printable } from '../../protocol/text.js'
import { ApiError, refreshSession, request } from '../api.js'
import { Button } from '../components/button.js'
import { RadioGroup, TextAreaField } from '../components/field.js'
import { Icon } from '../components/icon.js'
import { Notice } from '../components/notice.js'
import { showToast } from '../components/toast.js'
import { formatCredits, plural } from '../format.js'
import { useAction } from '../resource.js'
import { linkTo, navigate } from '../routes.js'
import { useSession } from '../session.js'
import { useStore } from '../store.js'
import {
  type CreateFailure,
  type FailedCreate,
  failureOf,
  isOutcomeUnknown,
  unknownOutcome,
} from './create-failure.js'
import { canResend, createBody, drafts, type Form, NEW_RUN } from './drafts.js'
import { fieldsOf, inputOf, ParameterField, valuesForKind } from './form-fields.js'
import { isTooLarge, readFiles } from './references.js'
import { ReferencesField } from './references-field.js'

export function NewRunForm({ form }: { readonly form: Form }) {
  const { account, models } = useSession()
  const draft = useStore(drafts.store).get(form.name) ?? form.start
  const { kind, values, references } = draft
  const model = models[kind]
  const [missing, setMissing] = useState<string>()
  const [created, setCreated] = useState<RunDetails>()
  const prompt = useRef<HTMLTextAreaElement>(null)
  useEffect(() => prompt.current?.focus(), [])

  const fields = fieldsOf(kind)
  const price = priceOf(kind, inputOf(kind, values, []))
  const create = useAction(() => createRun(form, model), {
    name: `create ${form.name}`,
    onDone: (created) => {
      // Stay on the form if a dialog is open or the user has changed the form.
      if (created.isChanged || document.querySelector('dialog[open]') !== null) setCreated(created.run)
      else navigate(linkTo('runs', { param: created.run.id }))
    },
    onMissed: showCreatedToast,
    onMissedError: (error) => {
      const { title, text } = failureOf(asFailure(error), {
        account: account.name,
        canResend: canResend(drafts.store.get().get(form.name) ?? form.start, model, Date.now()),
      })
      showToast(`${title} ${text}`, 'bad', { text: 'Show the form', href: hrefOf(form) })
    },
  })
  const canSendAgain = canResend(draft, model, Date.now())
  const failure =
    create.error !== undefined
      ? failureOf(asFailure(create.error), { account: account.name, canResend: canSendAgain })
      : draft.attempt !== undefined && !create.isBusy
        ? unknownOutcome(canSendAgain)
        : undefined
  const set = (name: string, value: string) =>
    drafts.edit(form, (content) => ({ values: { ...content.values, [name]: value } }))
  const submit = () => {
    const isEmpty = (values.prompt ?? '').trim() === ''
    setCreated(undefined)
    setMissing(isEmpty ? 'Write a prompt: what the model should make.' : undefined)
    if (isEmpty) prompt.current?.focus()
    else if (draft.reading === 0 && !isTooLarge(references)) void create.run()
  }
  return (
    <form
      class="form new-run"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Enter') return
        const isSubmit = event.ctrlKey || event.metaKey
        // Without this, Enter in a field or on a choice would submit the form, which costs credits.
        if (isSubmit || event.target instanceof HTMLInputElement) event.preventDefault()
        if (isSubmit && !event.repeat) submit()
      }}
    >
      <TextAreaField
        label="Prompt"
        name="prompt"
        rows={5}
        inputRef={prompt}
        placeholder="A red fox in the snow at dusk"
        value={values.prompt ?? ''}
        error={missing ?? failure?.fields.prompt}
        onInput={(value) => {
          setMissing(undefined)
          set('prompt', value)
        }}
      />
      <RadioGroup
        label="Model"
        value={kind}
        choices={KINDS.toReversed().map((each) => ({
          value: each,
          label: (
            <>
              <Icon name={each} /> {each === 'image' ? 'Image' : 'Video'}
              <span class="model-name">{printable(models[each])}</span>
            </>
          ),
        }))}
        onChange={(next) => {
          drafts.edit(form, (content) => ({ kind: next, values: valuesForKind(next, content.values) }))
        }}
      />
      {fields.map((field) => {
        const error = failure?.fields[field.name]
        if (field.control === 'prompt') return null
        if (field.control === 'sources')
          return (
            <ReferencesField
              key={field.name}
              label={field.label}
              maxItems={'maxItems' in field.schema ? field.schema.maxItems : undefined}
              references={references}
              error={error}
              isReading={draft.reading > 0}
              onChange={(change) =>
                drafts.edit(form, (content) => ({ references: change(content.references) }))
              }
              onFiles={(files) => addFiles(form, files)}
            />
          )
        return (
          <ParameterField
            key={`${kind} ${field.name}`}
            field={field}
            value={values[field.name] ?? ''}
            error={error}
            onChange={(value) => set(field.name, value)}
          />
        )
      })}
      {failure !== undefined && <Failure failure={failure} />}
      {created !== undefined && (
        <Notice tone="good" title={CREATED.text}>
          <a href={linkTo('runs', { param: created.id })}>{CREATED.link}</a>
        </Notice>
      )}
      <footer class="new-run-foot">
        <p class="new-run-price">
          <strong>{formatCredits(price)}</strong>{' '}
          <span class={price > account.balance ? 'is-short' : 'muted'}>
            {price > account.balance ? 'Not enough: the balance is ' : 'of '}
            {formatCredits(account.balance)}
          </span>
        </p>
        <span class="new-run-keys muted" aria-hidden="true">
          <kbd>{isApple() ? '⌘' : 'Ctrl'}</kbd> <kbd>Enter</kbd>
        </span>
        <Button
          type="submit"
          kind="primary"
          isBusy={create.isBusy || draft.reading > 0}
          disabled={account.banned}
        >
          {create.isBusy ? 'Creating' : draft.reading > 0 ? 'Reading images' : 'Create run'}
        </Button>
      </footer>
    </form>
  )
}

const asFailure = (error: unknown): FailedCreate =>
  error instanceof ApiError ? error : { status: 0, code: 'network', message: String(error) }

async function createRun(form: Form, model: string) {
  const created = await drafts.send(form, {
    model,
    nowMs: Date.now(),
    newId: newRequestId,
    request: (draft, id) =>
      request<RunDetails>('POST', CONSOLE_PATHS.runs, {
        body: createBody(draft, model),
        idempotencyKey: id,
      }),
    mayExist: (error) => isOutcomeUnknown(asFailure(error)),
    refusesInput: (error) => asFailure(error).code === 'invalid_input',
  })
  // Read the balance instead of subtracting the price: other users create runs too, and an existing run costs nothing.
  refreshSession().catch(() => undefined)
  return created
}

/** Does not use `randomUUID`, which needs https or a loopback address. */
const newRequestId = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join(
    '',
  )

const CREATED = { text: 'The run is created.', link: 'Show it' } as const

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
    showToast(`${plural(count, 'image')} not added: the form was sent or emptied.`, 'bad')
  return problems
}

const isApple = (): boolean => /mac|iphone|ipad/i.test(navigator.platform)

function Failure({ failure: { title, text, mayExist } }: { readonly failure: CreateFailure }) {
  return (
    <Notice tone={mayExist ? 'warn' : 'bad'} title={title}>
      <p class="wrap">{printable(text)}</p>
      {mayExist && (
        <a href={linkTo('runs', { query: { key: 'console' } })}>Show the runs that were created here</a>
      )}
    </Notice>
  )
}
