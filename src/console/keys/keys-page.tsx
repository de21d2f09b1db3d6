/** API keys: what each may do and has done, and everything that changes one. */
import { useEffect, useState } from 'preact/hooks'
import type { ConsoleKey } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { runAction } from '../actions.js'
import { messageOf } from '../api.js'
import { Button } from '../components/button.js'
import { ConfirmDialog } from '../components/dialog.js'
import { EmptyState, ErrorNotice, SkeletonLines } from '../components/notice.js'
import { Card, Page } from '../components/page.js'
import { showToast } from '../components/toast.js'
import { useAction, useResource } from '../resource.js'
import { useSession } from '../session.js'
import { currentUser } from '../session-store.js'
import { useStore } from '../store.js'
import { KeyDialog } from './key-dialog.js'
import { keyActions, readKeys } from './key-requests.js'
import { ChangeUnknown, keysStore, lostChangesStore, lostSecretsStore, withPage } from './key-store.js'
import { KeyTable, toggleName } from './key-table.js'

type Open = { readonly kind: 'create' } | { readonly kind: 'edit' | 'rotate'; readonly key: ConsoleKey }

export function KeysPage() {
  const { account } = useSession()
  const { data, error, isLoading, reload } = useResource((signal) => readKeys({ signal }), [], keysStore)
  const [lostSecrets, lostChanges] = [useStore(lostSecretsStore).length, useStore(lostChangesStore)]
  useEffect(() => {
    // Only the list can tell what became of them.
    if (lostSecrets + lostChanges > 0) reload()
  }, [lostSecrets, lostChanges])
  const more = useAction(readMore, { name: 'more keys' })
  const [open, setOpen] = useState<Open>()
  const close = () => setOpen(undefined)

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
          {more.error !== undefined && (
            <div class="card-notice">
              <ErrorNotice error={more.error} />
            </div>
          )}
          {data?.next != null && (
            <div class="card-more">
              <Button isBusy={more.isBusy} disabled={isLoading} onClick={() => void more.run()}>
                Load more
              </Button>
            </div>
          )}
        </Card>
      )}
      {open?.kind === 'create' && <KeyDialog onSubmit={keyActions.create} onClose={close} />}
      {open?.kind === 'edit' && (
        <KeyDialog
          of={open.key}
          onSubmit={(body) => keyActions.change(open.key, body)}
          onSaved={() => showToast('Saved.')}
          onClose={close}
        />
      )}
      {open?.kind === 'rotate' && <RotateDialog of={open.key} onClose={close} />}
    </Page>
  )
}

async function readMore(): Promise<void> {
  const user = currentUser()
  const before = keysStore.get()?.next
  if (before == null) return
  const page = await readKeys({}, before)
  keysStore.set((list) => list && withPage(list, before, page), user)
}

function toggle(key: ConsoleKey): void {
  const name = printable(key.name)
  void runAction(toggleName(key), {
    act: () => keyActions.change(key, { disabled: !key.disabled }),
    onMissed: () => showToast(key.disabled ? `"${name}" works again.` : `"${name}" is disabled.`),
    onMissedError: (error) =>
      showToast(
        error instanceof ChangeUnknown ? error.message : `"${name}" was not changed. ${messageOf(error)}`,
        'bad',
      ),
  })
}

interface RotateDialogProps {
  readonly of: ConsoleKey
  readonly onClose: () => void
}

function RotateDialog({ of: key, onClose }: RotateDialogProps) {
  return (
    <ConfirmDialog
      title={`Rotate "${printable(key.name)}"?`}
      action="Rotate key"
      // A second rotation would end the secret that programs still use.
      name={`rotate ${key.id}`}
      onClose={onClose}
      onConfirm={() => keyActions.rotate(key)}
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
