/** Dialogs that create and edit an API key, and notices about new and lost secrets, shown on every page. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ConsoleKey, KeyTermsBody } from '../../protocol/console.js'
import { printable, quoteWord } from '../../protocol/text.js'
import { isStartingOver } from '../api.js'
import { Button } from '../components/button.js'
import { CodeBlock } from '../components/copy.js'
import { Dialog, DialogActions } from '../components/dialog.js'
import { Form, TextAreaField, TextField } from '../components/field.js'
import { ErrorNotice, Notice } from '../components/notice.js'
import { showToast } from '../components/toast.js'
import { useAction } from '../resource.js'
import { linkTo } from '../routes.js'
import { useSession } from '../session.js'
import { useStore } from '../store.js'
import {
  awaitedSecretsStore,
  lostSecretsStore,
  type NewSecret,
  type SecretRequest,
  secretsStore,
} from './key-store.js'
import { checkFields, expiryHint, fieldsOf, type KeyFields, NO_TERMS, termsOf } from './key-terms.js'

export interface KeyDialogProps {
  /** Key to edit. If undefined, the dialog creates a key. */
  readonly of?: ConsoleKey
  /** Sends the change. Continues even if the dialog is closed. */
  readonly onSubmit: (body: KeyTermsBody) => Promise<unknown>
  readonly onSaved?: () => void
  readonly onClose: () => void
}

export function KeyDialog({ of: key, onSubmit, onSaved, onClose }: KeyDialogProps) {
  const before = useRef(key === undefined ? NO_TERMS : fieldsOf(key)).current
  const [fields, setFields] = useState(before)
  const [isTried, setTried] = useState(false)
  const save = useAction(onSubmit, {
    onDone: () => {
      onSaved?.()
      onClose()
    },
    onMissed: () => onSaved?.(),
  })
  const leave = () => {
    if (save.isBusy && key === undefined) showToast('The key is being created. Its secret will appear here.')
    onClose()
  }
  const submit = () => {
    const body = termsOf(fields, before)
    if (Object.keys(body).length === 0) onClose()
    else void save.run(body)
  }
  const found = checkFields(fields, before, Date.now())
  const errors = isTried ? found : {}
  const field = (name: keyof KeyFields) => ({
    name,
    value: fields[name],
    error: errors[name],
    onInput: (value: string) => setFields({ ...fields, [name]: value }),
  })
  return (
    <Dialog title={key === undefined ? 'New API key' : `Edit "${printable(key.name)}"`} onClose={leave}>
      <Form isValid={Object.keys(found).length === 0} onTry={() => setTried(true)} onSubmit={submit}>
        <TextField
          label="Name"
          maxLength={100}
          autocomplete="off"
          placeholder="For example: CI"
          {...field('name')}
        />
        <div class="form-row">
          <TextField
            label="Spend limit"
            isOptional
            inputMode="numeric"
            autocomplete="off"
            placeholder="No limit"
            hint="Lifetime limit, in credits"
            {...field('spendLimit')}
          />
          <TextField
            label="Quota"
            isOptional
            inputMode="numeric"
            autocomplete="off"
            placeholder="No limit"
            hint="Lifetime limit, in runs"
            {...field('quota')}
          />
        </div>
        <TextField
          label="Expires"
          isOptional
          type="date"
          hint={expiryHint(fields.expires, key)}
          {...field('expires')}
        />
        <TextAreaField
          label="Allowed IP addresses"
          isOptional
          rows={2}
          placeholder="Any address"
          hint={
            <>
              One per line: <code>192.0.2.7</code> or <code>10.0.0.0/8</code>
            </>
          }
          {...field('addresses')}
        />
        <ErrorNotice error={save.error} />
        <DialogActions>
          <Button onClick={leave}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={save.isBusy}>
            {key === undefined ? 'Create key' : 'Save'}
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  )
}

/** Shows new secrets one after another. Each secret can be shown only once. */
export function NewSecrets() {
  const [secret] = useStore(secretsStore)
  const isAwaited = useStore(awaitedSecretsStore) > 0
  const isNeeded = secret !== undefined || isAwaited
  useEffect(() => {
    if (!isNeeded) return
    // Makes the browser ask before a reload, which would lose the secret.
    const askToStay = (event: BeforeUnloadEvent) => {
      if (!isStartingOver()) event.preventDefault()
    }
    window.addEventListener('beforeunload', askToStay)
    return () => window.removeEventListener('beforeunload', askToStay)
  }, [isNeeded])
  if (secret === undefined) return null
  const close = () => secretsStore.set((secrets) => secrets.filter((each) => each !== secret))
  return <SecretDialog key={secret.apiKey} secret={secret} onClose={close} />
}

interface SecretDialogProps {
  readonly secret: NewSecret
  readonly onClose: () => void
}

function SecretDialog({ secret: { name, apiKey }, onClose }: SecretDialogProps) {
  const { base_url: baseUrl, models } = useSession()
  const lines = exportLines({
    RUSHES_BASE_URL: baseUrl,
    RUSHES_API_KEY: apiKey,
    RUSHES_IMAGE_MODEL: models.image,
    RUSHES_VIDEO_MODEL: models.video,
  })
  return (
    <Dialog title={`"${printable(name)}" is created`} size="wide" isSticky onClose={onClose}>
      <Notice tone="warn" title="Copy the key now.">
        It is shown only once.
      </Notice>
      <div class="stack">
        <h3>API key</h3>
        <CodeBlock code={apiKey} label="API key" />
      </div>
      <div class="stack">
        <h3>Use it in a terminal</h3>
        <CodeBlock code={lines} label="export lines" />
      </div>
      <DialogActions>
        <Button kind="primary" onClick={onClose}>
          I have copied it
        </Button>
      </DialogActions>
    </Dialog>
  )
}

export function LostSecrets() {
  const lost = useStore(lostSecretsStore)
  return (
    <>
      {lost.map((each, at) => (
        <LostSecret
          key={at}
          of={each}
          onDismiss={() => lostSecretsStore.set((all) => all.filter((other) => other !== each))}
        />
      ))}
    </>
  )
}

interface LostSecretProps {
  readonly of: SecretRequest
  readonly onDismiss: () => void
}

function LostSecret({ of: { name: full }, onDismiss }: LostSecretProps) {
  const name = printable(full)
  const keys = <a href={linkTo('keys')}>API keys</a>
  const dismiss = (
    <Button size="small" onClick={onDismiss}>
      Dismiss
    </Button>
  )
  return (
    <Notice tone="bad" title={`The key "${name}" may have been created.`} action={dismiss}>
      The response with the secret was lost. If {keys} has a new key with this name, disable it, then create
      another one.
    </Notice>
  )
}

/** Shell commands that set the environment variables, so that `rushes` uses the key in a terminal. */
export const exportLines = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    .map(([name, value]) => `export ${name}=${quoteWord(value)}`)
    .join('\n')
