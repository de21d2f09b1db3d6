import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { messageOf } from '../api.js'
import { useAction } from '../resource.js'
import { Button } from './button.js'
import { Notice } from './notice.js'

export interface DialogProps {
  readonly title: string
  readonly children: ComponentChildren
  /** Called by Escape, the close button, and a press outside. */
  readonly onClose: () => void
  readonly size?: 'normal' | 'wide'
  /** Closes by its buttons alone: for content that is shown once, which an accidental Escape must not remove. */
  readonly isSticky?: boolean
}

/** A field, else the button that changes nothing. The browser would focus the close button. */
const FIRST_FOCUS =
  'form input, form textarea, form select, .dialog-actions .button-secondary, .code-block .button'

/** A modal dialog, open while it is drawn. The focus stays inside, and returns to the opener afterwards. */
export function Dialog({ title, children, onClose, size = 'normal', isSticky = false }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    const dialog = ref.current
    const opener = document.activeElement
    dialog?.showModal()
    dialog?.querySelector<HTMLElement>(FIRST_FOCUS)?.focus()
    return () => {
      dialog?.close()
      // The element is removed before the browser can return the focus.
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
    }
  }, [])
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the key for the same is Escape
    <dialog
      ref={ref}
      class={`dialog dialog-${size}`}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault()
        if (!isSticky) onClose()
      }}
      onClose={({ currentTarget: dialog }) => {
        // Some browsers close it at the second Escape despite `preventDefault`.
        if (!dialog.isConnected) return
        if (isSticky) dialog.showModal()
        else onClose()
      }}
      onClick={(event) => {
        if (event.target === ref.current && !isSticky) onClose()
      }}
    >
      <div class="dialog-body">
        <header class="dialog-header">
          <h2 id={titleId}>{title}</h2>
          <Button kind="ghost" size="small" icon="close" label="Close" onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  )
}

/** The buttons at the end of a dialog. */
export function DialogActions({ children }: { readonly children: ComponentChildren }) {
  return <footer class="dialog-actions">{children}</footer>
}

export interface ConfirmDialogProps {
  readonly title: string
  readonly children: ComponentChildren
  /** The label of the button, as "Rotate key". */
  readonly action: string
  readonly kind?: 'primary' | 'danger'
  /** The name of an action that must not start twice. */
  readonly name?: string
  /** Closes the dialog when it succeeds; an error is shown in it. */
  readonly onConfirm: () => Promise<unknown>
  readonly onClose: () => void
}

export function ConfirmDialog({
  title,
  children,
  action,
  kind = 'primary',
  name,
  onConfirm,
  onClose,
}: ConfirmDialogProps) {
  const confirm = useAction(onConfirm, { ...(name !== undefined && { name }), onDone: onClose })
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void confirm.run()
        }}
      >
        <div class="stack">{children}</div>
        {confirm.error !== undefined && <Notice tone="bad">{messageOf(confirm.error)}</Notice>}
        <DialogActions>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={kind} isBusy={confirm.isBusy}>
            {action}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}
