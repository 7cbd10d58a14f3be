package io.pyconnect.host;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.errors.AlreadyExistsException;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.NotFoundException;
import org.apache.kafka.connect.errors.RetriableException;

/** Describes exceptions for the Python process, which raises their counterparts. */
final class Errors {
    private Errors() {}

    /** Returns a map that may be changed; the message may be null. */
    static Map<String, Object> describe(Throwable error) {
        var described = new HashMap<String, Object>();
        described.put("class", error.getClass().getName());
        described.put("message", message(error));
        described.put("trace", Utils.stackTrace(error));
        described.put("kind", kind(error));
        return described;
    }

    /** Returns the message, or what the error wraps: a wrapper without one shows no reason. */
    static String message(Throwable error) {
        var cause = error.getCause();
        if (error.getMessage() != null || cause == null) {
            return error.getMessage();
        }
        var reason = message(cause);
        var name = cause.getClass().getName();
        return reason == null ? name : name + ": " + reason;
    }

    private static String kind(Throwable error) {
        if (error instanceof RetriableException) {
            return "retriable";
        } else if (error instanceof NotFoundException) {
            return "notFound";
        } else if (error instanceof AlreadyExistsException) {
            return "alreadyExists";
        } else if (error instanceof ConfigException) {
            return "config";
        } else if (error instanceof UnsupportedOperationException) {
            return "unsupported";
        }
        return error instanceof ConnectException ? "connect" : "other";
    }
}
