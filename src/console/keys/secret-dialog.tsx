/** New secrets and lost ones, on whatever page the user is when the answer comes. */
import { useEffect } from 'preact/hooks'
import { printable } from '../../protocol/text.js'
import { Button } from '../components/button.js'
import { CodeBlock } from '../components/copy.js'
import { Dialog, DialogActions } from '../components/dialog.js'
import { Notice } from '../components/notice.js'
import { linkTo } from '../routes.js'
import { useSession } from '../session.js'
import { useStore } from '../store.js'
import { exportLines } from './key-state.js'
import {
  awaitedSecretsStore,
  lostSecretsStore,
  type NewSecret,
  type SecretRequest,
  secretsStore,
} from './key-store.js'

/** The only place where a secret is shown, once. */
export function NewSecrets() {
  const [secret] = useStore(secretsStore)
  const isAwaited = useStore(awaitedSecretsStore) > 0
  const isNeeded = secret !== undefined || isAwaited
  useEffect(() => {
    if (!isNeeded) return
    // The browser asks before a reload, which would lose it.
    const stay = (event: BeforeUnloadEvent) => event.preventDefault()
    window.addEventListener('beforeunload', stay)
    return () => window.removeEventListener('beforeunload', stay)
  }, [isNeeded])
  if (secret === undefined) return null
  const close = () => secretsStore.set((secrets) => secrets.filter((each) => each !== secret))
  return <SecretDialog key={secret.apiKey} secret={secret} onClose={close} />
}

interface SecretDialogProps {
  readonly secret: NewSecret
  readonly onClose: () => void
}

function SecretDialog({ secret: { name, isRotated, apiKey }, onClose }: SecretDialogProps) {
  const { base_url: baseUrl, models } = useSession()
  const lines = exportLines({
    RUSHES_BASE_URL: baseUrl,
    RUSHES_API_KEY: apiKey,
    RUSHES_IMAGE_MODEL: models.image,
    RUSHES_VIDEO_MODEL: models.video,
  })
  return (
    <Dialog
      title={isRotated ? `"${printable(name)}" has a new secret` : `"${printable(name)}" is created`}
      size="wide"
      isSticky
      onClose={onClose}
    >
      <Notice tone="warn" title="Copy the key now.">
        It is shown only once: the service keeps its hash, not the key.
      </Notice>
      <div class="stack">
        <h3>API key</h3>
        <CodeBlock code={apiKey} label="API key" />
      </div>
      <div class="stack">
        <h3>To use it in a terminal</h3>
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

function LostSecret({ of: { name: full, isRotated }, onDismiss }: LostSecretProps) {
  const name = printable(full)
  const keys = <a href={linkTo('keys')}>API keys</a>
  const dismiss = (
    <Button size="small" onClick={onDismiss}>
      Dismiss
    </Button>
  )
  return isRotated ? (
    <Notice tone="bad" title={`"${name}" may have a new secret.`} action={dismiss}>
      The answer was lost, and the secret with it. If {keys} says "Old secret ends" for this key, the old
      secret works for 24 hours: create another key, use it everywhere, then disable this one.
    </Notice>
  ) : (
    <Notice tone="bad" title={`The key "${name}" may have been created.`} action={dismiss}>
      The answer was lost, and the secret with it. If {keys} has a new key with this name, disable it, then
      create another one.
    </Notice>
  )
}
