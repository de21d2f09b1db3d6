import { Button } from '../components/button.js'
import { Notice } from '../components/notice.js'
import { useSession } from '../session.js'
import { userChangeStore } from '../session-change.js'
import { useStore } from '../store.js'

/** Says that another tab of this browser signed in as somebody else. */
export function UserChangeNotice() {
  const change = useStore(userChangeStore)
  const { email, account } = useSession()
  if (change === undefined) return null
  return (
    <div role="alert">
      <Notice
        tone="warn"
        title={`You are now signed in as ${email}.`}
        action={
          <Button size="small" onClick={() => userChangeStore.set(() => undefined)}>
            OK
          </Button>
        }
      >
        <span class="wrap">
          Another user signed in with this browser. This page showed {change.before} before, and shows the
          account {account.name} now.
        </span>
      </Notice>
    </div>
  )
}
