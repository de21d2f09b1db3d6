/** Page with the users of the account, for its owners: invites and removes users, and changes their roles. */
import { useState } from 'preact/hooks'
import {
  CONSOLE_PATHS,
  type ConsoleUser,
  type Invitation,
  type UserList,
  type UserRole,
} from '../../protocol/console.js'
import { request } from '../api.js'
import { Button } from '../components/button.js'
import { CodeBlock } from '../components/copy.js'
import { ConfirmDialog, Dialog, DialogActions } from '../components/dialog.js'
import { Form, SelectField, TextField } from '../components/field.js'
import { Badge, ErrorNotice, Loaded } from '../components/notice.js'
import { Card, Page } from '../components/page.js'
import { type Column, Table } from '../components/table.js'
import { Time } from '../components/time.js'
import { toastError } from '../components/toast.js'
import { capitalized } from '../format.js'
import { Action } from '../keys/keys-page.js'
import { useAction, useResource } from '../resource.js'
import { useSession } from '../session.js'

type OpenDialog =
  | { readonly kind: 'invite' }
  | { readonly kind: 'link'; readonly invitation: Invitation }
  | { readonly kind: 'promote' | 'demote' | 'remove'; readonly user: ConsoleUser }

const CHANGES = {
  promote: ['owner', 'An owner manages all API keys, credits and users of this account.'],
  demote: ['member', 'A member creates runs and manages the API keys that they created.'],
  remove: [undefined, 'Their sessions end. Their runs and API keys stay, and the keys keep working.'],
} as const

export function UsersPage() {
  const { email, account } = useSession()
  const users = useResource((signal) => request<UserList>('GET', CONSOLE_PATHS.users, { signal }), [])
  const [open, setOpen] = useState<OpenDialog>()
  const close = () => setOpen(undefined)
  const showLink = (invitation: Invitation) => {
    setOpen({ kind: 'link', invitation })
    users.reload()
  }
  const columns: readonly Column<ConsoleUser>[] = [
    {
      name: 'Email',
      render: (user) => (
        <span class="row">
          <span class="wrap">{user.email}</span>
          {user.email === email && <Badge tone="accent">You</Badge>}
          {!user.has_password && <Badge tone="neutral">No password yet</Badge>}
        </span>
      ),
    },
    { name: 'Role', render: ({ role }) => capitalized(role) },
    { name: 'Last seen', class: 'nowrap', render: (user) => <Time at={user.last_seen_at} none="Never" /> },
    {
      name: 'Actions',
      isTitleHidden: true,
      align: 'right',
      render: (user) => {
        const kind = user.role === 'owner' ? 'demote' : 'promote'
        const newLink = () => request<Invitation>('POST', CONSOLE_PATHS.userLink, { params: { id: user.id } })
        return user.email === email ? (
          <span />
        ) : (
          <div class="key-actions">
            {!user.has_password && (
              <Action label={`Link for ${user.email}`} onClick={() => newLink().then(showLink, toastError)} />
            )}
            <Action label={`${capitalized(kind)} ${user.email}`} onClick={() => setOpen({ kind, user })} />
            <Action label={`Remove ${user.email}`} onClick={() => setOpen({ kind: 'remove', user })} />
          </div>
        )
      },
    },
  ]
  return (
    <Page
      title="Users"
      about="Members create runs and manage their own API keys. Owners also manage all keys, credits and users."
      actions={
        <Button
          kind="primary"
          icon="plus"
          disabled={account.banned}
          onClick={() => setOpen({ kind: 'invite' })}
        >
          Invite
        </Button>
      }
    >
      <Loaded {...users}>
        {({ users: rows }) => (
          <Card isFlush>
            <Table caption="Users" columns={columns} rows={rows} keyOf={({ id }) => id} />
          </Card>
        )}
      </Loaded>
      {open?.kind === 'invite' && <InviteDialog onDone={showLink} onClose={close} />}
      {open?.kind === 'link' && <LinkDialog of={open.invitation} onClose={close} />}
      {open !== undefined && 'user' in open && (
        <ChangeDialog {...open} onDone={users.reload} onClose={close} />
      )}
    </Page>
  )
}

interface ChangeDialogProps {
  readonly kind: keyof typeof CHANGES
  readonly user: ConsoleUser
  readonly onDone: () => void
  readonly onClose: () => void
}

function ChangeDialog({ kind, user: { id, email }, onDone, onClose }: ChangeDialogProps) {
  const [role, about] = CHANGES[kind]
  const change = { params: { id }, ...(role !== undefined && { body: { role } }) }
  return (
    <ConfirmDialog
      title={`${capitalized(kind)} ${email}?`}
      action={`${capitalized(kind)} user`}
      kind={kind === 'remove' ? 'danger' : 'primary'}
      onConfirm={() =>
        request(role === undefined ? 'DELETE' : 'PATCH', CONSOLE_PATHS.user, change).finally(onDone)
      }
      onClose={onClose}
    >
      <p>{about}</p>
    </ConfirmDialog>
  )
}

interface InviteDialogProps {
  readonly onDone: (invitation: Invitation) => void
  readonly onClose: () => void
}

function InviteDialog({ onDone, onClose }: InviteDialogProps) {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<UserRole>('member')
  const [isTried, setTried] = useState(false)
  const problem = /\S@\S/.test(email) ? undefined : 'Enter an email address.'
  const body = { email, role }
  const invite = useAction(() => request<Invitation>('POST', CONSOLE_PATHS.users, { body }), { onDone })
  return (
    <Dialog title="Invite a user" onClose={onClose}>
      <Form
        class="form"
        isValid={problem === undefined}
        onTry={() => setTried(true)}
        onSubmit={() => void invite.run()}
      >
        <TextField
          label="Email"
          type="email"
          value={email}
          onInput={setEmail}
          error={isTried ? problem : undefined}
        />
        <SelectField
          label="Role"
          value={role}
          choices={(['member', 'owner'] as const).map((value) => ({ value, label: capitalized(value) }))}
          onChange={setRole}
        />
        <ErrorNotice error={invite.error} />
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={invite.isBusy}>
            Create link
          </Button>
        </DialogActions>
      </Form>
    </Dialog>
  )
}

function LinkDialog({ of, onClose }: { readonly of: Invitation; readonly onClose: () => void }) {
  return (
    <Dialog title={`Sign-in link for ${of.user.email}`} isSticky onClose={onClose}>
      <p>Send it to them: it works once, within 15 minutes, and is not shown again.</p>
      <CodeBlock code={of.link} label="link" />
      <DialogActions>
        <Button onClick={onClose}>Close</Button>
      </DialogActions>
    </Dialog>
  )
}
