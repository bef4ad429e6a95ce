import com.informix.jdbcx.IfxPAMChallenge;
import com.informix.jdbcx.IfxPAMResponse;
import com.informix.jdbcx.PAM;
import com.informix.jdbcx.PAMResponseImpl;

/** Answers a challenge of PAM with the password that the test chose; for drivers of version 15. */
public final class PamOf15 implements PAM {
    @Override
    public IfxPAMResponse pamChallenge(IfxPAMChallenge challenge) {
        PAMResponseImpl response = new PAMResponseImpl();
        response.setResponse(System.getProperty("witness.pam"));
        response.setResponseType(challenge.getChallengeType());
        return response;
    }
}
