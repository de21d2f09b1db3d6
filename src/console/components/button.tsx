import type { ComponentChildren, Ref } from 'preact'
import { Icon, type IconName } from './icon.js'

export interface ButtonLook {
  /** Use at most one `primary` button per view. `ghost` has no border. */
  readonly kind?: 'primary' | 'secondary' | 'danger' | 'ghost'
  readonly size?: 'small' | 'normal'
  readonly icon?: IconName
  readonly children?: ComponentChildren
  /** Accessible name. Required if the button shows only an icon. */
  readonly label?: string
  readonly class?: string
}

export interface ButtonProps extends ButtonLook {
  /** Shows a spinner and ignores clicks. */
  readonly isBusy?: boolean
  readonly disabled?: boolean
  readonly type?: 'button' | 'submit'
  readonly onClick?: (event: MouseEvent) => void
  readonly ref?: Ref<HTMLButtonElement>
  readonly isPressed?: boolean
}

/** Attributes that a button and a link that looks like one share. */
function lookOf({ kind = 'secondary', size = 'normal', children, label, class: more }: ButtonLook) {
  const isIcon = children === undefined
  const classes = [
    'button',
    `button-${kind}`,
    size === 'small' && 'button-small',
    isIcon && 'button-icon',
    more,
  ]
  return { class: classes.filter(Boolean).join(' '), 'aria-label': label, title: label }
}

export function Button(props: ButtonProps) {
  const { children, isBusy = false, disabled = false, type = 'button', onClick, ref } = props
  return (
    <button
      ref={ref ?? null}
      type={type}
      {...lookOf(props)}
      aria-busy={isBusy || undefined}
      aria-pressed={props.isPressed}
      disabled={disabled}
      onClick={(event) => {
        // A disabled button would lose the focus, and with it the user's position in the page.
        if (isBusy) event.preventDefault()
        else onClick?.(event)
      }}
    >
      {isBusy ? <span class="spinner" /> : props.icon && <Icon name={props.icon} />}
      {children !== undefined && <span>{children}</span>}
    </button>
  )
}

export interface LinkButtonProps extends ButtonLook {
  readonly href: string
  /** File name. If set, the browser saves the target instead of opening it. */
  readonly download?: string
  readonly newTab?: boolean
}

/** Link that looks like a button. */
export function LinkButton(props: LinkButtonProps) {
  const { href, children, download, newTab = false } = props
  return (
    <a
      href={href}
      {...lookOf(props)}
      download={download}
      {...(newTab && { target: '_blank', rel: 'noreferrer' })}
    >
      {props.icon && <Icon name={props.icon} />}
      {children !== undefined && <span>{children}</span>}
    </a>
  )
}
