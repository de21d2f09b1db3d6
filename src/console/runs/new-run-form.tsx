import { useEffect, useRef, useState } from 'preact/hooks'
import { CONSOLE_PATHS, type RunDetails } from '../../protocol/console.js'
import { priceOf } from '../../protocol/local-prices.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { printable } from '../../protocol/text.js'
import { ApiError, request } from '../api.js'
import { Button } from '../components/button.js'
import { TextAreaField } from '../components/field.js'
import { Icon } from '../components/icon.js'
import { Notice } from '../components/notice.js'
import { RadioGroup } from '../components/radio-group.js'
import { formatCredits } from '../format.js'
import { useAction } from '../resource.js'
import { navigate } from '../router.js'
import { linkTo } from '../routes.js'
import { setBalance, useSession } from '../session.js'
import { type CreateFailure, failureOf } from './create-failure.js'
import { fieldsOf, inputOf, type Values, valuesForKind } from './form.js'
import { ParameterField } from './parameter-field.js'
import { isTooLarge, type Reference } from './reference-list.js'
import { ReferencesField } from './references-field.js'
import { type FormStart, forgetDraft, saveDraft } from './saved-draft.js'

export interface NewRunFormProps {
  readonly start: FormStart
  /** Kept for a reload; a form that was filled from a run is filled from it again. */
  readonly isDraft?: boolean
}

export function NewRunForm({ start, isDraft = false }: NewRunFormProps) {
  const { email, account, models } = useSession()
  const [kind, setKind] = useState<Kind>(start.kind)
  const [values, setValues] = useState<Values>(start.values)
  const [references, setReferences] = useState(start.references)
  const [missing, setMissing] = useState<string>()
  const form = useRef<HTMLFormElement>(null)
  const prompt = useRef<HTMLTextAreaElement>(null)

  useEffect(() => {
    if (isDraft) saveDraft({ kind, values, references }, email)
  }, [kind, values, references])
  useEffect(() => prompt.current?.focus(), [])

  const fields = fieldsOf(kind)
  const input = inputOf(
    kind,
    values,
    references.map(({ source }) => source),
  )
  const price = priceOf(kind, input)
  const create = useAction(async () => {
    const run = await request<RunDetails>('POST', CONSOLE_PATHS.runs, {
      body: { model: models[kind], input },
    })
    setBalance(account.balance - run.price)
    forgetDraft(email)
    navigate(linkTo('runs', { param: run.id }))
  })
  const failure = create.error === undefined ? undefined : failureOf(asFailure(create.error), account.name)
  const set = (name: string, value: string) => setValues((before) => ({ ...before, [name]: value }))
  const submit = () => {
    const lacks = (values.prompt ?? '').trim() === ''
    setMissing(lacks ? 'Write a prompt: what the model should make.' : undefined)
    if (lacks) prompt.current?.focus()
    else if (!isTooLarge(references)) void create.run()
  }
  return (
    <form
      ref={form}
      class="form new-run"
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return
        event.preventDefault()
        submit()
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
          setKind(next)
          setValues(valuesForKind(next, values))
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
              onChange={(change: (list: readonly Reference[]) => readonly Reference[]) =>
                setReferences(change)
              }
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
        <Button type="submit" kind="primary" isBusy={create.isBusy} disabled={account.banned}>
          {create.isBusy ? 'Creating' : 'Create run'}
        </Button>
      </footer>
    </form>
  )
}

const asFailure = (error: unknown) =>
  error instanceof ApiError ? error : { status: 0, code: 'network', message: String(error) }

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
