/** API keys: what each may do and has done, and everything that changes one. */
import { useState } from 'preact/hooks'
import { CONSOLE_PATHS, type ConsoleKey, type KeyList, type NewKeyAnswer } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { messageOf, request } from '../api.js'
import { Button } from '../components/button.js'
import { ConfirmDialog } from '../components/dialog.js'
import { EmptyState, ErrorNotice, SkeletonLines } from '../components/notice.js'
import { Card, Page } from '../components/page.js'
import { showToast } from '../components/toast.js'
import { useResource } from '../resource.js'
import { useSession } from '../session.js'
import { KeyDialog } from './key-dialog.js'
import { KeyTable } from './key-table.js'
import { SecretDialog } from './secret-dialog.js'

type Open =
  | { readonly kind: 'create' }
  | { readonly kind: 'edit' | 'rotate'; readonly key: ConsoleKey }
  | { readonly kind: 'secret'; readonly answer: NewKeyAnswer; readonly isRotated: boolean }

export function KeysPage() {
  const { account } = useSession()
  const { data, error, reload, set } = useResource(
    (signal) => request<KeyList>('GET', CONSOLE_PATHS.keys, { signal }),
    [],
  )
  const [open, setOpen] = useState<Open>()
  const close = () => setOpen(undefined)

  /** Puts a key that the service sent into the list. */
  const keep = (key: ConsoleKey) => {
    const keys = data?.keys ?? []
    const isKnown = keys.some(({ id }) => id === key.id)
    set({ keys: isKnown ? keys.map((each) => (each.id === key.id ? key : each)) : [key, ...keys] })
  }
  const change = async (key: ConsoleKey, body: object, done: string) => {
    keep(await request<ConsoleKey>('PATCH', CONSOLE_PATHS.key, { params: { id: key.id }, body }))
    showToast(done)
  }
  const toggle = (key: ConsoleKey) =>
    change(
      key,
      { disabled: !key.disabled },
      key.disabled ? `"${printable(key.name)}" works again.` : `"${printable(key.name)}" is disabled.`,
    ).catch((thrown: unknown) => showToast(messageOf(thrown), 'bad'))

  const newKey = (
    <Button kind="primary" icon="plus" disabled={account.banned} onClick={() => setOpen({ kind: 'create' })}>
      New key
    </Button>
  )
  return (
    <Page
      title="API keys"
      about="Programs use a key to create runs for this account. Give each program its own."
      actions={newKey}
    >
      {error !== undefined && <ErrorNotice error={error} onRetry={reload} />}
      {(data !== undefined || error === undefined) && (
        <Card isFlush>
          {data === undefined ? (
            <SkeletonLines count={4} />
          ) : data.keys.length === 0 ? (
            <EmptyState icon="key" title="No API keys yet" action={newKey}>
              Create one, then use it with <code>rushes login</code> or as <code>RUSHES_API_KEY</code>.
            </EmptyState>
          ) : (
            <KeyTable
              keys={data.keys}
              onEdit={(key) => setOpen({ kind: 'edit', key })}
              onRotate={(key) => setOpen({ kind: 'rotate', key })}
              onToggle={toggle}
            />
          )}
        </Card>
      )}
      {open?.kind === 'create' && (
        <KeyDialog
          onClose={close}
          onSubmit={async (body) => {
            const answer = await request<NewKeyAnswer>('POST', CONSOLE_PATHS.keys, { body })
            keep(answer.key)
            setOpen({ kind: 'secret', answer, isRotated: false })
          }}
        />
      )}
      {open?.kind === 'edit' && (
        <KeyDialog
          of={open.key}
          onClose={close}
          onSubmit={async (body) => {
            if (Object.keys(body).length > 0) await change(open.key, body, 'Saved.')
            close()
          }}
        />
      )}
      {open?.kind === 'rotate' && (
        <RotateDialog
          of={open.key}
          // It closes when the key is rotated, and by then the secret is shown.
          onClose={() => setOpen((now) => (now?.kind === 'rotate' ? undefined : now))}
          onRotated={(answer) => {
            keep(answer.key)
            setOpen({ kind: 'secret', answer, isRotated: true })
          }}
        />
      )}
      {open?.kind === 'secret' && (
        <SecretDialog answer={open.answer} isRotated={open.isRotated} onClose={close} />
      )}
    </Page>
  )
}

interface RotateDialogProps {
  readonly of: ConsoleKey
  readonly onClose: () => void
  readonly onRotated: (answer: NewKeyAnswer) => void
}

function RotateDialog({ of: key, onClose, onRotated }: RotateDialogProps) {
  return (
    <ConfirmDialog
      title={`Rotate "${printable(key.name)}"?`}
      action="Rotate key"
      onClose={onClose}
      onConfirm={async () =>
        onRotated(await request<NewKeyAnswer>('POST', CONSOLE_PATHS.rotate, { params: { id: key.id } }))
      }
    >
      <p>
        The key gets a new secret, which is shown once. Its name, limits and counts stay. The old secret works
        for 24 hours more, so that you can replace it everywhere.
      </p>
      {key.rotates_until !== null && (
        <p>This key was rotated less than 24 hours ago. The secret before that stops working now.</p>
      )}
      <p class="muted">
        If someone else knows the old secret, disable this key and create another one instead.
      </p>
    </ConfirmDialog>
  )
}
